"""One request to a deployment, and what comes back: a completion or a failure.

Times are seconds. Instants (`sent_s`, `done_s`) are on the clock `time.time()`; durations are measured on
`time.perf_counter()`. A column that a deployment cannot see is `None`, never zero.
"""

from typing import Literal

import msgspec

from harness.constraint import Constraint
from harness.method import Method


class Sampling(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the next token is chosen. `temperature` 0 is greedy; `top_k` 0 means all tokens.

    `stop` are strings that end the text (they are cut from it); a constrained request carries none.
    """

    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    stop: tuple[str, ...] = ()


class Request(msgspec.Struct, frozen=True):
    """One part of an answer to be generated. `constraint` is None for a free part, whatever the method is.

    `cache` names the requests that may share the work on common prompt prefixes: a deployment reuses a prefix only
    among requests with the same name, so that no arm runs on what another arm has warmed.
    """

    id: str
    example: str
    prompt_ids: tuple[int, ...]
    constraint: Constraint | None
    method: Method
    sampling: Sampling
    cache: str = ""


class Trace(msgspec.Struct, frozen=True):
    """What the model wanted and what the mask did, a value for each generated token (the stop token included).

    `raw_logprob`: of the token that was said, from the unmasked, untempered logits (nats).
    `masked_logprob`: of the same token after the mask, untempered (nats); equal to raw where there was no mask.
    `mass`: the unmasked probability that the mask kept, in [0, 1]; 1.0 where there was no mask.
    `allowed`: how many tokens the mask allowed; None where there was no mask (1 means that the token was forced).
    `wanted`: the unmasked most likely token; `wanted_logprob` its unmasked log-probability.
    """

    raw_logprob: tuple[float | None, ...]
    masked_logprob: tuple[float | None, ...]
    mass: tuple[float | None, ...]
    allowed: tuple[int | None, ...]
    wanted: tuple[int | None, ...]
    wanted_logprob: tuple[float | None, ...]


class Cost(msgspec.Struct, frozen=True):
    """Where the time of one request went. Shared step times are divided by the number of rows in the step.

    `forward_s`: its share of the forward passes; `mask_s`: making its masks, wherever that ran;
    `wait_s`: how long the loop stood still for its masks (all of `mask_s` where the mask is made in the loop);
    `apply_s`: its share of putting masks on logits; `compile_s`: first use of its constraint, before the first mask;
    `steps`: decode steps it took part in; `rows`: mean number of rows in them. The four times of masks are None, not 0,
    where nothing masked the request.
    """

    forward_s: float | None = None
    mask_s: float | None = None
    wait_s: float | None = None
    apply_s: float | None = None
    compile_s: float | None = None
    steps: int | None = None
    rows: float | None = None


class Timing(msgspec.Struct, frozen=True):
    """`sent_s` instant of sending; the rest are seconds since then. `token_s` has a value for each generated token."""

    sent_s: float
    first_token_s: float
    done_s: float
    token_s: tuple[float, ...] = ()


Finish = Literal["stop", "length", "stop_string"]
"""`stop`: the model's stop token, or the constraint was complete. `length`: `max_tokens` reached."""


class Completion(msgspec.Struct, frozen=True, tag="completion", tag_field="kind"):
    """What a deployment said. `token_ids` holds every generated token, the stop token included; `text` does not show
    the stop token. `prompt_tokens`, `cached_tokens` and `completion_tokens` are the deployment's own usage counts."""

    request_id: str
    text: str
    token_ids: tuple[int, ...]
    finish: Finish
    timing: Timing
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None = None
    trace: Trace | None = None
    cost: Cost = Cost()
    attempts: int = 1


FailureKind = Literal["processor", "timeout", "unsupported", "too_long", "rejected", "deployment"]
"""`processor`: what makes the masks, the user's code or an engine under any method, raised, gave what cannot be used,
left no token possible, or exited. `timeout`: it, or the request, took too long. `unsupported`: the engine cannot
express the constraint. `too_long`: prompt and budget exceed the context. `rejected`: the deployment refused the
request. `deployment`: the model or server died or could not be reached."""


class Failure(msgspec.Struct, frozen=True, tag="failure", tag_field="kind"):
    """What went wrong with one request; the run goes on."""

    request_id: str
    failure: FailureKind
    message: str
    timing: Timing | None = None
    attempts: int = 1


class Scores(msgspec.Struct, frozen=True):
    """Unmasked log-probabilities (nats) of one continuation, a value a token, never a placeholder for a missing one."""

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]

    @property
    def total(self) -> float:
        """The log-probability of the whole continuation."""
        return sum(self.logprobs)
