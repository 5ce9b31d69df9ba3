"""What a processor in the server reports of each token, and how it comes back in the answer's `meta_info`.

One row a token, in the order of `Told`; numbers alone, since the server sends all rows with every event.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from harness.request import Cost

KEY = "harness"
"""The name under which the rows stand in `meta_info`."""


class Told(msgspec.Struct, frozen=True, array_like=True):
    """One token. `log_mass`: the logarithm of the unmasked probability that was kept; `allowed`: how many tokens were;
    `wanted`: the unmasked most likely token, `wanted_logprob` its unmasked log-probability. Times in seconds: `mask_s`
    made the mask, `wait_s` the server stood still for it, `apply_s` put it on; `compile_s` the first use of the
    constraint. `rows` is the number of constrained rows in the step, `lag` the number of tokens by which the history
    was behind, `rewritten` 1 for new logits instead of a mask, `open` the number of sequences whose state is held."""

    log_mass: float
    allowed: int
    wanted: int
    wanted_logprob: float
    mask_s: float
    wait_s: float
    apply_s: float
    compile_s: float
    rows: int
    lag: int
    rewritten: Literal[0, 1]
    open: int


def told(meta: Mapping[str, Any], tokens: int) -> tuple[Told, ...] | None:
    """The rows of an answer of `tokens` tokens; None where a row is missing."""
    try:
        rows = msgspec.convert(meta.get(KEY), tuple[Told, ...])
    except msgspec.ValidationError:
        return None
    return rows if len(rows) == tokens else None


def cost(rows: Sequence[Told]) -> Cost:
    """Where the time went. What the forward pass took cannot be seen from inside a server."""
    return Cost(
        mask_s=sum(row.mask_s for row in rows),
        wait_s=sum(row.wait_s for row in rows),
        apply_s=sum(row.apply_s for row in rows),
        compile_s=sum(row.compile_s for row in rows),
        steps=len(rows),
        rows=sum(row.rows for row in rows) / len(rows) if rows else None,
    )
