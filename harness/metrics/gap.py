"""Intervals for distances between confidence and accuracy, which noise alone makes larger.

An ECE is a norm of a vector of mean residuals (one a bin); smooth ECE, and the reliability and resolution of Brier are
too. A norm of a noisy vector is too large on average, most of all near 0, and a bootstrapped one twice so: percentile
intervals of a calibrated model's ECE never hold the truth. So the interval is found by inverting a test: a true
distance is kept if the observed one is not in a 2.5% tail of what it, plus bootstrap noise, would show. Vectors of a
given true distance are taken in two directions, as observed (the smaller ones that noise could have swollen) and as an
even shift of all confidences (the larger ones that noise swells least). The interval always holds the reported value.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from harness.metrics.draws import Draw
from harness.metrics.estimate import LEVEL, Estimate
from harness.metrics.judged import Floats, Ints

HALVINGS = 9
WIDEST = 64.0
"""How many times the observed vector is considered; wider only where it is next to 0."""


@dataclass(frozen=True)
class Reach:
    """How far an interval must reach for what no resample can show."""

    low: float
    high: float

    def squared(self) -> "Reach":
        """The same for a gap that is squared."""
        return Reach(self.low**2, self.high**2)


SEEN = Reach(float("inf"), 0.0)
"""Resamples show all of it."""


@dataclass(frozen=True)
class Gap:
    """`norm` of the mean over answers of `moves`, shape (n, m): each answer's residual at its place.

    `even` (m,) is the vector of a shift of all confidences by 1; `norm` maps (times, m) to (times,), and no true value
    is above `most`.
    """

    moves: csr_array
    even: Floats
    norm: Callable[[Floats], Floats]
    most: float = 1.0

    def value(self) -> float:
        return float(self.norm(self._mean())[0])

    def interval(self, resamples: tuple[Draw, ...], widen: float, level: float = LEVEL) -> tuple[float, float]:
        """The ends of the interval of `value`, under noise `widen` times that of the resamples."""
        observed = self._mean()
        noise = widen * np.concatenate([self._noise(draw) for draw in resamples])
        sign = 1.0 if float((observed * self.even).sum()) >= 0 else -1.0
        return _invert(observed, self.even[None, :] * sign, noise, self.norm, (1 - level) / 2)

    def estimate(
        self, resamples: tuple[Draw, ...], widen: float = 1.0, reach: Reach = SEEN, value: float | None = None
    ) -> Estimate:
        """`value` replaces the plain norm (a debiased one); the interval holds all of `reach`."""
        reported, n = self.value() if value is None else value, int(self.moves.shape[0])
        if not resamples:
            return Estimate(reported, None, None, n)
        low, high = self.interval(resamples, widen)
        top = max(min(max(high, reach.high), self.most), reported)
        return Estimate(reported, min(low, reach.low, reported), top, n)

    def _mean(self) -> Floats:
        return np.asarray(self.moves.sum(axis=0) / self.moves.shape[0]).reshape(1, -1)

    def _noise(self, draw: Draw) -> Floats:
        moves = self.moves[draw.rows]
        centre = np.asarray(moves.sum(axis=0) / moves.shape[0])
        return np.asarray(draw.weights @ moves / draw.weights.sum(axis=1, keepdims=True) - centre)


def placed(residual: Floats, column: Ints, columns: int) -> csr_array:
    """Moves of answers that each fall in one column, shape (n, columns)."""
    rows = np.arange(residual.size)
    return csr_array((residual, (rows, column)), shape=(residual.size, columns))


def _invert(
    observed: Floats, even: Floats, noise: Floats, norm: Callable[[Floats], Floats], tail: float
) -> tuple[float, float]:
    seen = float(norm(observed)[0])

    def low_tail(vector: Floats) -> bool:
        """Would so small a distance as was seen be no surprise if this were the true vector?"""
        return bool(np.quantile(norm(vector + noise), tail) <= seen)

    def high_tail(vector: Floats) -> bool:
        return bool(np.quantile(norm(vector + noise), 1 - tail) >= seen)

    low = _bisect(lambda scale: not high_tail(scale * observed), 1.0)
    high = _bisect(lambda scale: low_tail(scale * observed), _ceiling(lambda scale: low_tail(scale * observed)))
    shift = _bisect(lambda scale: low_tail(scale * even), 1.0)
    ends = norm(np.concatenate([low * observed, high * observed, shift * even]))
    return float(ends[0]), float(max(ends[1], ends[2]))


def _bisect(below: Callable[[float], bool], ceiling: float) -> float:
    """The largest scale in [0, ceiling] for which `below` holds, 0 where it holds nowhere."""
    if not below(0.0):
        return 0.0
    low, high = 0.0, ceiling
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return (low + high) / 2


def _ceiling(below: Callable[[float], bool]) -> float:
    scale = 2.0
    while scale < WIDEST and below(scale):
        scale *= 2
    return scale
