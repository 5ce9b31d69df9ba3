"""Ratios of sums (tokens over seconds, mask time over tokens) and what several blocks or requests say of them."""

import numpy as np
from scipy.stats import t as student

from harness.metrics.estimate import LEVEL, Estimate, nothing
from harness.metrics.judged import Floats, Ints


def ratio(over: Floats, under: Floats, n: int | None = None, level: float = LEVEL) -> Estimate:
    """sum(over) / sum(under) of g independent groups, both of shape (g,) and not negative.

    The spread is the linearised ratio's (Cochran 1977, 6.3), the interval Student's with g - 1 degrees of freedom on
    the log, so that it stays above 0. No interval where there is one group, or the ratio is 0.
    """
    count = over.size if n is None else n
    below = float(under.sum())
    if over.size == 0 or below <= 0:
        return nothing(count)
    value = float(over.sum()) / below
    if over.size < 2 or value <= 0:
        return Estimate(value, None, None, count)
    groups = over.size
    error = np.sqrt(((over - value * under) ** 2).sum() * groups / (groups - 1)) / below
    factor = float(np.exp(student.ppf((1 + level) / 2, groups - 1) * error / value))
    if not np.isfinite(value * factor):
        return Estimate(value, None, None, count)
    return Estimate(value, value / factor, value * factor, count)


def complement(part: Estimate) -> Estimate:
    """1 - a ratio."""
    if part.value is None:
        return part
    low, high = (None if end is None else 1 - end for end in (part.high, part.low))
    return Estimate(1 - part.value, low, high, part.n)


def by_group(values: Floats, group: Ints) -> Floats:
    """The sums of values within each group that occurs, in ascending order of the groups."""
    return np.asarray(np.bincount(np.unique(group, return_inverse=True)[1], values), dtype=np.float64)
