"""Ratios of sums (tokens over seconds, mask time over tokens) and what several blocks or requests say of them."""

import numpy as np
from scipy.stats import t as student

from harness.metrics.estimate import LEVEL, Estimate, nothing
from harness.metrics.judged import Floats, Ints

LEAST = 3
"""Of two groups, Student's t reaches from next to nothing to a hundred times the value and more."""
WIDEST = 20.0
"""Half widths of the log beyond which an interval says nothing (half a billion times more or less)."""


def ratio(over: Floats, under: Floats, n: int | None = None, level: float = LEVEL) -> Estimate:
    """sum(over) / sum(under) of g independent groups, both of shape (g,) and not negative.

    The spread is the jackknife's (the ratio without each group in turn; Cochran 1977, 6.16), the interval Student's
    with g - 1 degrees of freedom on the log, so that it stays above 0. No interval of fewer than `LEAST` groups, of one
    that holds all, or where the ratio is 0.
    """
    count = over.size if n is None else n
    below = float(under.sum())
    if over.size == 0 or below <= 0:
        return nothing(count)
    value = float(over.sum()) / below
    if over.size < LEAST or value <= 0 or float(under.max()) >= below:
        return Estimate(value, None, None, count)
    groups = over.size
    moved = (over - value * under) / (below - under)
    error = np.sqrt((moved**2).sum() * (groups - 1) / groups)
    half = float(student.ppf((1 + level) / 2, groups - 1) * error / value)
    if half > WIDEST:
        return Estimate(value, None, None, count)
    return Estimate(value, value / float(np.exp(half)), value * float(np.exp(half)), count)


def complement(part: Estimate) -> Estimate:
    """1 - a ratio."""
    if part.value is None:
        return part
    low, high = (None if end is None else 1 - end for end in (part.high, part.low))
    return Estimate(1 - part.value, low, high, part.n)


def by_group(values: Floats, group: Ints) -> Floats:
    """The sums of values within each group that occurs, in ascending order of the groups."""
    return np.asarray(np.bincount(np.unique(group, return_inverse=True)[1], values), dtype=np.float64)
