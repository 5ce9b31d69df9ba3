"""Smooth ECE: the gap between confidence and accuracy without bins (Blasiok, Nakkiran 2023, arXiv 2309.12236).

Residuals (right - confidence) are smoothed along the confidence axis by a Gaussian reflected at 0 and 1; the error at
bandwidth s is the mean absolute smoothed residual, and smooth ECE is that error at the bandwidth that equals it. It is
continuous in the confidences, which bins are not.

Reflection at both ends makes the cosines the eigenfunctions of the smoothing: a bandwidth is a factor
exp(-(pi k s)^2 / 2) on the k-th cosine coefficient. So residuals are put on a grid once, transformed once, and every
bandwidth costs one inverse transform. The authors' relplot gives answers at exactly 0 or 1 half their weight (its grid
ends on them and is reflected without them); here every answer has the same weight.
"""

from functools import lru_cache

import numpy as np
from scipy.fft import dct, idct
from scipy.sparse import csr_array, diags_array

from harness.metrics.gap import Gap
from harness.metrics.judged import Floats, Judged

FINE = 512
COARSE = 128
"""Grid cells over [0, 1]: for the value, and for resamples."""

STEPS = 1024
"""Bandwidths that are tried: multiples of 1 / STEPS."""


def smooth_ece(answers: Judged, cells: int = COARSE) -> Gap:
    """Smooth ECE on a grid of `cells`."""
    grid = onto_grid(answers.confidence, cells)
    moves = csr_array(diags_array(answers.right - answers.confidence) @ grid)
    return Gap(moves, np.asarray(grid.sum(axis=0)).ravel() / answers.n, self_bandwidth_error)


def self_bandwidth_error(residuals: Floats) -> Floats:
    """The error at the bandwidth that equals it, for residuals on the grid, shape (times, cells) -> (times,)."""
    spectrum = dct(residuals, type=2, axis=1)
    damping = _damping(residuals.shape[1])
    low, high = np.zeros(len(residuals), dtype=np.intp), np.full(len(residuals), STEPS)
    while (high - low).max() > 1:
        middle = (low + high) // 2
        above = _error(spectrum * damping[middle]) > middle / STEPS
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return _error(spectrum * damping[high])


def _error(damped: Floats) -> Floats:
    return np.asarray(np.abs(idct(damped, type=2, axis=1)).sum(axis=1))


@lru_cache(maxsize=4)
def _damping(cells: int) -> Floats:
    """The factor on each cosine coefficient at each bandwidth, shape (STEPS + 1, cells)."""
    bandwidth = np.arange(STEPS + 1)[:, None] / STEPS
    return np.asarray(np.exp(-((np.pi * np.arange(cells) * bandwidth) ** 2) / 2))


def onto_grid(confidence: Floats, cells: int) -> csr_array:
    """(n, cells): each confidence shared between the two nearest cell centres; past the outer centres, one alone."""
    place = np.clip(confidence * cells - 0.5, 0, cells - 1)
    left = np.minimum(place.astype(np.intp), cells - 2)
    share = place - left
    rows = np.arange(confidence.size)
    return csr_array(
        (np.concatenate([1 - share, share]), (np.concatenate([rows, rows]), np.concatenate([left, left + 1]))),
        shape=(confidence.size, cells),
    )
