"""How a constraint meets the logits: `none`, `native`, `processor` or `async`.

A method and an engine together make an *arm*; its name, `method/engine`, is what every report shows.
"""

from typing import Annotated

import msgspec

Patience = Annotated[float, msgspec.Meta(gt=0)]
"""Seconds that a call may take."""


class Unconstrained(msgspec.Struct, frozen=True, tag="none", tag_field="kind", forbid_unknown_fields=True):
    """The model says what it likes; the constraint only judges."""


class Native(msgspec.Struct, frozen=True, tag="native", tag_field="kind", forbid_unknown_fields=True):
    """The deployment's own grammar: the engine runs inside its loop (on SGLang, the server's grammar backend)."""

    engine: str = "llguidance"


class Processor(msgspec.Struct, frozen=True, tag="processor", tag_field="kind", forbid_unknown_fields=True):
    """A callable `(inputs, logits) -> logits`, called once the logits are there.

    Exactly one of `engine` (a shipped mask engine) and `call` (`package.module:factory`, the user's own) is used:
    `call` wins where it is given. `timeout_s` bounds one call; a call that takes longer fails its request.
    """

    engine: str = "lm_format_enforcer"
    call: str | None = None
    timeout_s: Patience = 20.0


class AsyncProcessor(msgspec.Struct, frozen=True, tag="async", tag_field="kind", forbid_unknown_fields=True):
    """An async generator that makes its mask while the forward pass runs, then gets the logits and yields new ones.

    `workers` is the number of processes that make masks.
    """

    engine: str = "lm_format_enforcer"
    call: str | None = None
    timeout_s: Patience = 20.0
    workers: Annotated[int, msgspec.Meta(ge=1)] = 1


Method = Unconstrained | Native | Processor | AsyncProcessor


def arm_name(method: Method) -> str:
    """The name of the arm in every record and report: `none`, `native/llguidance`, `async/my_module:factory`."""
    match method:
        case Unconstrained():
            return "none"
        case Native(engine=engine):
            return f"native/{engine}"
        case Processor(engine=engine, call=call):
            return f"processor/{call or engine}"
        case AsyncProcessor(engine=engine, call=call):
            return f"async/{call or engine}"
