"""Reliability diagrams: how often answers were right at each level of confidence."""

import msgspec


class Bin(msgspec.Struct, frozen=True):
    """One bar of a diagram. The bin holds confidences in (left, right]; the first also holds 0.

    `confidence` is the mean in the bin; `accuracy` the share of right answers, `low` to `high` its 95% band.
    All four are None in an empty bin, which is drawn as missing, not as 0.
    """

    left: float
    right: float
    n: int
    confidence: float | None
    accuracy: float | None
    low: float | None
    high: float | None


class Reliability(msgspec.Struct, frozen=True):
    """A diagram of one arm under one confidence. The `n` of `width` (and of `mass`) sum to `n`, so the bars' counts are
    the histogram of confidences. `without` counts answers left out for lack of a confidence."""

    n: int
    without: int
    width: tuple[Bin, ...]
    mass: tuple[Bin, ...]
