"""Distributions of times: quantiles with intervals, and a histogram to draw."""

import msgspec

from harness.metrics.estimate import Estimate


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
