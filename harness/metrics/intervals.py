"""Intervals for numbers with bounds: shares, means of scores, areas under curves.

All are the binomial mid-P interval (Lancaster 1961; Berry, Armitage 1995): exact, with half of the observed outcome's
probability in each tail. Near 0 and 1 it keeps its coverage, where Wilson's falls to 84%, and it is not as wide as
Clopper and Pearson's. `docs/decisions/0008-intervals.md` has the figures.

A share of independent examples uses it as it is. Anything else uses it with the number of independent examples that
would vary as much (its effective n), so an interval never leaves the bounds and never closes to a point because all
examples happened to agree.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import betainc
from scipy.stats import norm
from scipy.stats import t as student

from harness.metrics.estimate import LEVEL, Estimate, nothing
from harness.metrics.judged import Floats, Ints

HALVINGS = 40


def mid_p(share: float, n: float, level: float = LEVEL) -> tuple[float, float]:
    """The interval of an observed share among n independent examples. Neither `share * n` nor n need be whole."""
    tail = (1 - level) / 2
    count = share * n
    low = 0.0 if share <= 0 else _crossing(lambda p: _at_least(p, count, n) > tail)
    high = 1.0 if share >= 1 else 1 - _crossing(lambda q: _at_least(q, n - count, n) > tail)
    return min(low, share), max(high, share)


def share(hits: Floats, cluster: Ints | None = None) -> Estimate:
    """The share of ones among zeros and ones of shape (n,), with its interval."""
    return bounded_mean(hits, cluster)


def bounded_mean(values: Floats, cluster: Ints | None = None, low: float = 0.0, high: float = 1.0) -> Estimate:
    """The mean of values in [low, high], shape (n,), that are independent or, given `cluster`, drawn in clusters."""
    if values.size == 0:
        return nothing()
    unit = (values - low) / (high - low)
    groups = unit.size if cluster is None else int(np.unique(cluster).size)
    if groups == unit.size and bool(np.isin(unit, (0.0, 1.0)).all()):
        ends = mid_p(float(unit.mean()), unit.size)
        return _scaled(float(unit.mean()), ends, low, high, unit.size)
    variance = mean_variance(unit, cluster)
    return bounded(float(values.mean()), variance * (high - low) ** 2, unit.size, groups, low, high)


def bounded(
    value: float, variance: float, n: int, groups: int, low: float = 0.0, high: float = 1.0, level: float = LEVEL
) -> Estimate:
    """A statistic in [low, high] with its sampling variance, estimated from `groups` independent groups of n values."""
    at = min(max((value - low) / (high - low), 0.0), 1.0)
    return _scaled(at, mid_p(at, effective_n(at, variance / (high - low) ** 2, groups, level), level), low, high, n)


def effective_n(share: float, variance: float, groups: int, level: float = LEVEL) -> float:
    """How many independent zeros and ones would make a mean vary this much.

    At a bound nothing varies, and the groups are all that is known; nor is anything known more finely than by groups
    squared. The variance is itself estimated from the groups, so it is widened as Student's t is.
    """
    if groups < 2 or share <= 0 or share >= 1:
        return float(groups)
    alike = share * (1 - share) / max(variance * widening(groups, level) ** 2, 1e-300)
    return max(min(alike, float(groups) ** 2), 1.0)


def widening(groups: int, level: float = LEVEL) -> float:
    """How much wider an interval is for having its variance from so many groups: Student's t over the normal."""
    return float(student.ppf((1 + level) / 2, groups - 1) / norm.ppf((1 + level) / 2))


def mean_variance(values: Floats, cluster: Ints | None = None) -> float:
    """The sampling variance of a mean of values, shape (n,), robust to clusters (Miller 2024, arXiv 2411.00640).

    It is what the bootstrap over clusters converges to, with the factor g / (g - 1) that the bootstrap leaves out.
    """
    residual = values - values.mean()
    sums = residual if cluster is None else np.bincount(np.unique(cluster, return_inverse=True)[1], residual)
    if sums.size < 2:
        return 0.0
    return float((sums**2).sum() / values.size**2 * sums.size / (sums.size - 1))


def _at_least(p: float, count: float, n: float) -> float:
    """P(X > count) + P(X = count) / 2 for X binomial(n, p), continued to real counts by the incomplete beta."""
    more = betainc(count + 1, n - count, p) if count < n else 0.0
    return float((betainc(count, n - count + 1, p) + more) / 2)


def _crossing(above: Callable[[float], bool]) -> float:
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if above(middle) else (middle, high)
    return (low + high) / 2


def _scaled(value: float, ends: tuple[float, float], low: float, high: float, n: int) -> Estimate:
    span = high - low
    return Estimate(low + span * value, low + span * ends[0], low + span * ends[1], n)
