"""Bins of confidence. Every bin is closed on the right, the first also on the left, so that 0 and 1 have a place.

Of equal width, or of equal mass: edges at the quantiles, equal confidences never parted, so that ties make fewer bins
and not arbitrary ones.
"""

import numpy as np

from harness.metrics.judged import Floats, Ints

BINS = 10
"""As HELM (Liang et al. 2022, arXiv 2211.09110); with the 100 to 1,000 examples of a task, 15 bins are mostly noise."""


def width_edges(bins: int = BINS) -> Floats:
    """Edges of `bins` bins of equal width over [0, 1], shape (bins + 1,)."""
    return np.linspace(0.0, 1.0, bins + 1)


def mass_edges(confidence: Floats, bins: int = BINS) -> Floats:
    """Edges at the quantiles of ascending confidences, from 0 to 1; at most `bins` bins, none of them empty."""
    n = confidence.size
    if n == 0:
        return np.array([0.0, 1.0])
    places = -(-np.arange(1, bins) * n // bins) - 1
    inner = np.unique(confidence[np.maximum(places, 0)])
    inner = inner[(inner < confidence[-1]) & (inner > 0.0)] if n else inner
    return np.concatenate([[0.0], inner, [1.0]])


def bin_of(confidence: Floats, edges: Floats) -> Ints:
    """The bin of each confidence: i where edges[i] < c <= edges[i + 1]; 0 is in the first."""
    return np.searchsorted(edges[1:-1], confidence, side="left")


def starts(confidence: Floats, edges: Floats) -> Ints:
    """Where each bin that is not empty begins in ascending confidences (for `numpy.add.reduceat`)."""
    return np.unique(bin_of(confidence, edges), return_index=True)[1]
