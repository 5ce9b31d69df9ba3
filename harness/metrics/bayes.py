"""Resamples that know of what was not seen, for scores and areas that hang on the rarer outcome.

Where few answers are wrong, or none is, resamples of the answers alone say that little varies, and their intervals miss
the truth most of the time. Here answers are weighed by a Bayesian bootstrap (Rubin 1981) to which half an answer of
each outcome is added, with the confidence of an answer drawn at random. For a share that is Jeffreys' interval; scores
and areas get its coverage too, and the skewness of what they average. Tails are taken at Student's t (Hesterberg 2015).

Answers are weighed by level of confidence; of many different ones, neighbours share a level, so that the cost does not
grow with the answers. Clusters are weighed as one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.stats import norm
from scipy.stats import t as student

from harness.metrics.estimate import LEVEL, Estimate
from harness.metrics.judged import Floats, Ints, Judged

FEWEST = 5
"""Answers (clusters) below which an interval is not given: see docs/decisions/0008-intervals.md."""
CUTS = 400
"""Levels that each outcome is cut into at least, where it has so many different confidences."""
CELLS = 1_000_000
LEAST, MOST = 400, 2000
"""Resamples; the more, the fewer levels or clusters there are."""

ByLevel = Callable[[Floats, Floats], Floats]
"""A statistic of the weights of right and of wrong answers at each level, both (times, levels) and ascending by
confidence; gives (times,)."""


@dataclass(frozen=True)
class Levels:
    """The answers at each level of confidence, ascending: how many were right and wrong there, both (levels,). `starts`
    (levels,) says where each level begins among the answers."""

    answers: Judged
    starts: Ints
    right: Floats
    wrong: Floats

    def mean(self, values: Floats) -> Floats:
        """The mean of a value of each answer over each level, (n,) -> (levels,)."""
        return np.asarray(np.add.reduceat(values, self.starts) / (self.right + self.wrong))


@dataclass(frozen=True)
class Weighed:
    """Resampled weights of right and of wrong answers at each of `levels`, both (times, levels); a row of both sums to
    the number of answers."""

    levels: Levels
    right: Floats
    wrong: Floats

    def estimate(
        self, value: float, statistic: ByLevel, groups: int, low: float = 0.0, high: float = 1.0, level: float = LEVEL
    ) -> Estimate:
        """`value` with the interval of a statistic in [low, high] whose variance is known as from so many groups. No
        interval below `FEWEST` answers."""
        answers = self.levels.answers
        if answers.clusters < FEWEST:
            return Estimate(value, None, None, answers.n)
        found = statistic(self.right, self.wrong)
        moved = value - float(statistic(self.levels.right[None, :], self.levels.wrong[None, :])[0])
        widen = np.sqrt(answers.clusters / (answers.clusters - 1))
        tail = float(norm.cdf(-widen * student.ppf((1 + level) / 2, groups - 1)))
        ends = np.clip(np.quantile(found, (tail, 1 - tail)) + moved, low, high)
        return Estimate(value, min(float(ends[0]), value), max(float(ends[1]), value), answers.n)


def weighed(answers: Judged, seed: int) -> Weighed:
    """Resamples of some answers; the same seed and answers give the same ones."""
    found, rng = levels(answers), np.random.default_rng(seed)
    units = found.starts.size if answers.groups is None else answers.clusters
    times = int(np.clip(CELLS // units, LEAST, MOST))
    right, wrong = _independent(found, times, rng) if answers.groups is None else _clustered(found, times, rng)
    for outcome in (right, wrong):
        drawn = np.searchsorted(found.starts, rng.integers(0, answers.n, times), side="right") - 1
        outcome[np.arange(times), drawn] += rng.standard_gamma(0.5, times) * answers.n / answers.clusters
    scale = answers.n / (right.sum(axis=1, keepdims=True) + wrong.sum(axis=1, keepdims=True))
    return Weighed(found, right * scale, wrong * scale)


def levels(answers: Judged) -> Levels:
    """The levels of some answers: equal confidences are never parted."""
    different = np.unique(answers.confidence)
    if different.size > 2 * CUTS:
        cuts = [_cuts(answers.confidence[answers.right == outcome]) for outcome in (0.0, 1.0)]
        different = np.unique(np.concatenate([different[:1], *cuts]))
    starts = np.searchsorted(answers.confidence, different)
    right = np.add.reduceat(answers.right, starts)
    return Levels(answers, starts, right, np.diff([*starts, answers.n]) - right)


def _cuts(confidence: Floats) -> Floats:
    """The confidences at `CUTS` quantiles of ascending ones, all of them where there are fewer."""
    return confidence[
        np.unique(np.linspace(0, max(confidence.size - 1, 0), min(CUTS, confidence.size)).astype(np.intp))
    ]


def _independent(found: Levels, times: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    shape = (times, found.starts.size)
    return rng.standard_gamma(found.right, shape), rng.standard_gamma(found.wrong, shape)


def _clustered(found: Levels, times: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    answers, count = found.answers, found.starts.size
    level = np.repeat(np.arange(count), np.diff([*found.starts, answers.n]))
    shape = (answers.clusters, count)
    right = csr_array((answers.right, (answers.cluster, level)), shape=shape)
    wrong = csr_array((1 - answers.right, (answers.cluster, level)), shape=shape)
    drawn = list(_exponentials(times, answers.clusters, rng))
    return np.concatenate([part @ right for part in drawn]), np.concatenate([part @ wrong for part in drawn])


def _exponentials(times: int, units: int, rng: np.random.Generator) -> Iterator[Floats]:
    step = max(CELLS // units, 1)
    for start in range(0, times, step):
        yield rng.standard_exponential((min(step, times - start), units))
