"""Throughput over interleaved blocks, and where the time of a step went."""

import msgspec


class Block(msgspec.Struct, frozen=True):
    """One block of one arm, run alone on the deployment within one session. Failed requests are in neither count.

    `seconds` runs from the first sending to the last completion; `good` counts requests in time, `correct` those in
    time, valid and right (all requests are in time where no target was set).
    """

    block: int
    session: int
    requests: int
    tokens: int
    seconds: float
    good: int
    correct: int


class Split(msgspec.Struct, frozen=True):
    """Where the wall time of an arm's whole blocks went, in seconds per output token; the parts sum to `total_s`.

    `forward_s`: the model. `mask_s`: the loop standing still for masks (made out of its sight, a mask costs nothing
    here). `apply_s`: putting masks on logits. `other_s`: the rest (sampling, compiling, queueing, transport).
    A part is None where the deployment does not report it; its time is then within `other_s`.
    `made_s`: making masks wherever it ran, hidden or not; not one of the parts.
    """

    tokens: int
    total_s: float
    forward_s: float | None
    mask_s: float | None
    apply_s: float | None
    other_s: float
    made_s: float | None
