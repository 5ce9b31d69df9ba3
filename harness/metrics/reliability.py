"""Reliability diagrams: how often answers were right at each level of confidence."""

import msgspec
import numpy as np

from harness.metrics.binning import bin_of, mass_edges, width_edges
from harness.metrics.intervals import bounded_mean
from harness.metrics.judged import Floats, Judged


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


def reliability(answers: Judged) -> Reliability:
    """The diagram over bins of equal width and of equal mass."""
    width = bins(answers, width_edges())
    return Reliability(answers.n, answers.without, width, bins(answers, mass_edges(answers.confidence)))


def bins(answers: Judged, edges: Floats) -> tuple[Bin, ...]:
    """One bin between each two edges."""
    place = bin_of(answers.confidence, edges)
    ends = np.searchsorted(place, np.arange(edges.size))
    return tuple(
        _bin(answers, float(edges[i]), float(edges[i + 1]), slice(int(ends[i]), int(ends[i + 1])))
        for i in range(edges.size - 1)
    )


def _bin(answers: Judged, left: float, right: float, rows: slice) -> Bin:
    groups = answers.groups
    band = bounded_mean(answers.right[rows], None if groups is None else groups[rows])
    confidence = float(answers.confidence[rows].mean()) if band.n else None
    return Bin(left, right, band.n, confidence, band.value, band.low, band.high)
