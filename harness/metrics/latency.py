"""Distributions of times: quantiles with intervals, and a histogram to draw."""

from collections.abc import Sequence

import msgspec
import numpy as np

from harness.metrics.estimate import LEVEL, Estimate, nothing
from harness.metrics.intervals import mean_variance, mid_p, widening
from harness.metrics.judged import Floats, Ints

LEVELS = (0.5, 0.9, 0.99)
BARS = 40
ENOUGH_BLOCKS = 5
"""Fewer blocks cannot show how much blocks differ; the interval is then over requests as if they were independent."""


class Distribution(msgspec.Struct, frozen=True):
    """Times of one kind in one arm, in seconds. `n` counts the observations.

    `quantiles` maps `p50`, `p90`, `p99` to estimates (no interval where n is too small for one).
    `edges` has one more entry than `counts`, is spaced evenly in log time and covers all observations; every arm of a
    summary has the same edges for the same kind, so that histograms can be laid over each other. `ecdf` holds the
    times at the shares 0, 0.01 ... 1.
    """

    n: int
    mean: float | None
    quantiles: dict[str, Estimate]
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    ecdf: tuple[float, ...]


def quantile(times: Floats, level: float, block: Ints) -> Estimate:
    """The time that a share `level` of requests do not exceed, with an interval (Woodruff 1952).

    The interval of the share is turned into times by the observed distribution. Requests of a block share what went on
    in it, so the share varies as its blocks do, never less than over independent requests. No interval where n is so
    small that the longest (or the shortest) time may lie on the wrong side of the true quantile.
    """
    if times.size == 0:
        return nothing()
    value = float(np.quantile(times, level))
    n = float(times.size)
    blocks = int(np.unique(block).size)
    if blocks >= ENOUGH_BLOCKS:
        variance = mean_variance((times <= value).astype(np.float64), block) * widening(blocks) ** 2
        n = max(min(n, level * (1 - level) / max(variance, 1e-300)), 1.0)
    tail = (1 - LEVEL) / 2
    if level**n > tail or (1 - level) ** n > tail:
        return Estimate(value, None, None, times.size)
    low, high = (float(np.quantile(times, end)) for end in mid_p(level, n))
    return Estimate(value, min(low, value), max(high, value), times.size)


def quantiles(times: Floats, block: Ints) -> dict[str, Estimate]:
    """`p50`, `p90` and `p99`."""
    return {f"p{level * 100:.0f}": quantile(times, level, block) for level in LEVELS}


def edges(times: Sequence[Floats]) -> Floats:
    """Edges for the histograms of several arms; none where no arm has a time."""
    found = np.concatenate(times) if times else np.empty(0)
    if found.size == 0:
        return np.empty(0)
    low = max(float(found.min()), 1e-6)
    return np.geomspace(low, max(float(found.max()), low * 1.01), BARS + 1)


def distribution(times: Floats, block: Ints, bars: Floats) -> Distribution:
    """The distribution of an arm's times, its histogram over the edges `bars`."""
    return Distribution(
        n=times.size,
        mean=float(times.mean()) if times.size else None,
        quantiles=quantiles(times, block),
        edges=tuple(bars.tolist()),
        counts=tuple(np.histogram(np.clip(times, bars[0], bars[-1]), bars)[0].tolist()) if bars.size else (),
        ecdf=tuple(np.quantile(times, np.linspace(0, 1, 101)).tolist()) if times.size else (),
    )
