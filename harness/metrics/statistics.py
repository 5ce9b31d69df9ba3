"""Tests and intervals for differences between two arms on the same examples."""

from collections.abc import Sequence

import msgspec
import numpy as np
from scipy.stats import binom, norm
from scipy.stats import t as student

from harness.metrics.draws import counts
from harness.metrics.estimate import LEVEL
from harness.metrics.intervals import mean_variance
from harness.metrics.judged import Floats, Ints
from harness.metrics.ratios import by_group

POWER = 0.8
TIMES = 2000
LEAST_BLOCKS = 3
"""Speeds of fewer paired blocks are not tested."""
ENOUGH_BLOCKS = 6
"""Of fewer, the spread is not known to within a factor of 2.5, so what they would have shown is not said."""
BOOTSTRAPPED = 500
"""Up to so many clusters the test is bootstrapped; with more, a mean is normal to within the bootstrap's own noise."""


class Tested(msgspec.Struct, frozen=True):
    """A mean paired difference (or ratio) with its interval, p-value and minimal detectable difference, as in
    `harness.metrics.pairs.Pair`."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    p: float | None
    mdd: float | None


def mcnemar(only_first: int, only_second: int) -> float:
    """The exact two-sided p of McNemar's test: of the examples on which two arms disagree, each wins half by chance
    (McNemar 1947; exact binomial form)."""
    disagree = only_first + only_second
    return min(1.0, 2 * float(binom.cdf(min(only_first, only_second), disagree, 0.5))) if disagree else 1.0


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """p-values adjusted so that the chance of any false finding among them stays below the level (Holm 1979)."""
    order = np.argsort(p_values, kind="stable")
    factors = len(p_values) - np.arange(len(p_values))
    adjusted = np.minimum(np.maximum.accumulate(np.asarray(p_values)[order] * factors), 1.0)
    back = np.empty(len(p_values))
    back[order] = adjusted
    return tuple(back.tolist())


def paired_outcomes(first: Floats, second: Floats, cluster: Ints | None, seed: int) -> Tested:
    """Two arms' zeros and ones on the same examples, shape (n,): exact McNemar, or where examples come in clusters the
    paired bootstrap over clusters, since McNemar's examples are independent."""
    difference = first - second
    if difference.size == 0 or cluster is not None:
        return paired_means(difference, cluster, seed)
    p = mcnemar(int((difference > 0).sum()), int((difference < 0).sum()))
    return _difference(difference, cluster, p, float(norm.ppf((1 + LEVEL) / 2)))


def paired_means(difference: Floats, cluster: Ints | None, seed: int) -> Tested:
    """Differences in [-1, 1] of two arms on the same examples, shape (n,), tested by the paired bootstrap."""
    if difference.size == 0:
        return Tested(None, None, None, 0, None, None)
    groups = _groups(difference, cluster)
    if groups < 2:
        return Tested(float(difference.mean()), None, None, difference.size, None, None)
    p = bootstrap_p(difference, cluster, seed)
    return _difference(difference, cluster, p, float(student.ppf((1 + LEVEL) / 2, groups - 1)))


def paired_losses(difference: Floats, unseen: Floats, cluster: Ints | None, seed: int) -> Tested:
    """The same for losses that hang on a rare outcome. `unseen` (n,) is what each difference would be if both arms had
    the other outcome there.

    Where few answers are wrong, or none, the differences seen are nearly equal and any test of them is sure of itself:
    of thirty right answers the surer arm always has the lower Brier score, though one wrong answer would turn it round.
    So one example more (one cluster) counts, with a difference drawn from `unseen`; the interval and the p are the
    wider of the two.
    """
    plain, groups = paired_means(difference, cluster, seed), _groups(difference, cluster)
    if plain.p is None or plain.low is None or plain.high is None:
        return plain
    more, n = difference.size / groups, difference.size
    mean = float(difference.sum() + more * unseen.mean()) / (n + more)
    square = float((difference**2).sum() + more * (unseen**2).mean()) / (n + more)
    spread = np.sqrt(_design_effect(difference, cluster) / n)
    error, quantile = (
        float(np.sqrt(max(square - mean**2, 0.0)) * spread),
        float(student.ppf((1 + LEVEL) / 2, groups - 1)),
    )
    if error == 0:
        return plain
    shown = float((quantile + norm.ppf(POWER)) * np.sqrt(square) * spread)
    return msgspec.structs.replace(
        plain,
        low=max(min(plain.low, mean - quantile * error), -1.0),
        high=min(max(plain.high, mean + quantile * error), 1.0),
        p=max(plain.p, float(2 * student.sf(abs(mean) / error, groups - 1))),
        mdd=None if plain.mdd is None else min(max(plain.mdd, shown), 1.0),
    )


def bootstrap_p(difference: Floats, cluster: Ints | None, seed: int) -> float:
    """Two-sided p of a mean of 0, studentised (Hall, Wilson 1991): how often a resampled mean lies as many of its own
    standard errors from the observed mean as that lies from 0. Never below what a sign test of so many clusters allows.
    """
    sums, sizes = difference, np.ones(difference.size)
    if cluster is not None:
        sums, sizes = by_group(sums, cluster), by_group(sizes, cluster)
    mean = sums.sum() / sizes.sum()
    observed = _t(mean, np.array([((sums - mean * sizes) ** 2).sum()]), sizes.sum())[0]
    if sums.size > BOOTSTRAPPED:
        return float(2 * student.sf(observed, sums.size - 1))
    weights = counts(np.random.default_rng(seed), sums.size, sums.size, TIMES)
    total, size = weights @ sums, weights @ sizes
    again = total / size
    squares = weights @ sums**2 - 2 * again * (weights @ (sums * sizes)) + again**2 * (weights @ sizes**2)
    resampled = _t(again - mean, squares, size)
    return max(float((1 + (resampled >= observed).sum()) / (TIMES + 1)), 2.0 ** (1 - sums.size))


def log_ratios(logs: Floats) -> Tested:
    """Log ratios of paired blocks, shape (blocks,): Student's t test, told as ratios. Fewer than `LEAST_BLOCKS` give a
    ratio and no test: two that agree by chance would look certain."""
    if logs.size == 0:
        return Tested(None, None, None, 0, None, None)
    value, free = float(logs.mean()), logs.size - 1
    error = float(logs.std(ddof=1)) / np.sqrt(logs.size) if free else 0.0
    if error == 0 or logs.size < LEAST_BLOCKS:
        return Tested(_ratio(value), None, None, logs.size, None, None)
    half = float(student.ppf((1 + LEVEL) / 2, free)) * error
    known = logs.size >= ENOUGH_BLOCKS
    shown = half + float(student.ppf(POWER, free)) * error
    p = float(2 * student.sf(abs(value) / error, free))
    low, high = _ratio(value - half), _ratio(value + half)
    return Tested(_ratio(value), low, high, logs.size, p, _ratio(shown) if known else None)


def _difference(difference: Floats, cluster: Ints | None, p: float, quantile: float) -> Tested:
    """The interval of Bonett and Price (2012): one example more on each side, so that it does not close to a point
    where few examples, or none, differ. For differences that are not whole, an example more is one of the usual size.
    """
    n = difference.size
    moved = difference[difference != 0]
    unit = float((moved**2).mean()) if moved.size else 1.0
    mean = float(difference.sum()) / (n + 2)
    around_zero = (float((difference**2).sum()) + 2 * unit) / (n + 2)
    spread = np.sqrt(_design_effect(difference, cluster) / (n + 2))
    half = quantile * float(np.sqrt(max(around_zero - mean**2, 0.0))) * float(spread)
    value = float(difference.mean())
    low, high = min(mean - half, value), max(mean + half, value)
    found = (quantile + float(norm.ppf(POWER))) * float(np.sqrt(around_zero)) * float(spread)
    return Tested(value, max(low, -1.0), min(high, 1.0), n, p, _detectable(found, unit, _groups(difference, cluster)))


def _detectable(found: float, unit: float, groups: int) -> float | None:
    """At least six examples must differ, all one way, before a sign test reaches 5% (2 / 2^6 = 0.03)."""
    return None if groups < 6 else min(max(found, 6 / groups * float(np.sqrt(unit))), 1.0)


def _design_effect(difference: Floats, cluster: Ints | None) -> float:
    """How much more the mean varies for examples coming in clusters; where nothing varies, as if all of a cluster were
    one example."""
    groups = _groups(difference, cluster)
    if groups == difference.size:
        return 1.0
    alone = mean_variance(difference)
    return max(mean_variance(difference, cluster) / alone, 1.0) if alone > 0 else difference.size / groups


def _groups(difference: Floats, cluster: Ints | None) -> int:
    return difference.size if cluster is None else int(np.unique(cluster).size)


def _t(mean: Floats | float, squares: Floats, size: Floats | float) -> Floats:
    """|mean| in standard errors; 0 where the mean is 0, infinite where only its error is."""
    error = np.sqrt(np.clip(squares, 0, None)) / size
    far = np.abs(np.asarray(mean)) > 1e-12
    return np.where(far, np.abs(mean) / np.where(error > 1e-12, error, 1e-300), 0.0)


def _ratio(log: float) -> float:
    return float(np.exp(min(log, 700.0)))
