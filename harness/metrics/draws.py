"""Bootstrap resamples of judged answers, drawn by cluster, in bounded time and memory.

Up to `UNITS` clusters, plain resampling (Efron 1979). Beyond, the bag of little bootstraps (Kleiner et al. 2014,
arXiv 1112.5016): several subsets of clusters, each resampled to the full size, whose variances are averaged. The cost
then no longer grows with n.
"""

from dataclasses import dataclass

import numpy as np

from harness.metrics.judged import Floats, Ints, Judged

TIMES = 500
"""Resamples: a standard error is then known to 3%."""

FEWEST = 10
"""Clusters below which resamples show too little: see docs/decisions/0008-intervals.md."""
UNITS = 2000
ROWS = 20_000
CELLS = 4_000_000
SUBSETS = 5


@dataclass(frozen=True)
class Draw:
    """How often each of `rows` (positions in the answers, ascending) was drawn: `weights` of shape (times, rows)."""

    rows: Ints
    weights: Floats


def draws(answers: Judged, seed: int) -> tuple[Draw, ...]:
    """Resamples of all answers, or of several subsets of them; the same seed and answers give the same draws. None of
    fewer than `FEWEST` clusters."""
    if answers.clusters < FEWEST:
        return ()
    generator = np.random.default_rng(seed)
    if answers.clusters <= UNITS and answers.n <= ROWS:
        return (_draw(answers, np.arange(answers.clusters), TIMES, generator),)
    per_subset = int(np.clip(ROWS * answers.clusters // answers.n, min(30, answers.clusters), UNITS))
    chosen = [generator.permutation(answers.clusters)[:per_subset] for _ in range(SUBSETS)]
    return tuple(_draw(answers, clusters, TIMES // SUBSETS, generator) for clusters in chosen)


def _draw(answers: Judged, clusters: Ints, times: int, generator: np.random.Generator) -> Draw:
    place = np.full(answers.clusters, -1)
    place[clusters] = np.arange(clusters.size)
    rows = np.flatnonzero(place[answers.cluster] >= 0)
    times = int(np.clip(CELLS // rows.size, 50, times))
    return Draw(rows, counts(generator, answers.clusters, clusters.size, times)[:, place[answers.cluster[rows]]])


def counts(generator: np.random.Generator, drawn: int, units: int, times: int) -> Floats:
    """How often each unit comes up in `drawn` draws with replacement, shape (times, units).

    Of more draws than can be made one by one in good time, the counts are taken as normal: right in mean and variance,
    and that is all a standard error takes from them.
    """
    if drawn > 6 * units:
        near = drawn / units + np.sqrt(drawn / units) * generator.standard_normal((times, units))
        near = np.maximum(near, 0.0)
        return np.asarray(near * (drawn / near.sum(axis=1, keepdims=True)))
    picks = generator.integers(0, units, (times, drawn)) + units * np.arange(times)[:, None]
    return np.bincount(picks.ravel(), minlength=times * units).reshape(times, units).astype(np.float64)
