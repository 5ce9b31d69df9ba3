"""Temperature and Platt scaling, fitted on one half of the examples and reported on the other.

Temperature (Guo et al. 2017, arXiv 1706.04599) divides the log-odds of a confidence; Platt (1999) gives them a slope
and an offset. Both are fitted by likelihood with Platt's smoothed targets, so that they stay finite where all answers
of the fitted half are right, or confidence parts right from wrong. Fitting and reporting on the same examples would
flatter both (HELM's calibration does so).
"""

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit

from harness.metrics.bayes import weighed
from harness.metrics.binning import width_edges
from harness.metrics.calibration import ece_estimate, losses_of
from harness.metrics.draws import draws
from harness.metrics.estimate import Estimate
from harness.metrics.judged import Floats, Judged, judged
from harness.metrics.likelihood import FLOOR
from harness.metrics.reliability import Bin, bins

FEWEST = 20
"""Answers in a half below which scaling is not worth a number."""

STEEPEST = 100.0
"""Temperatures are sought between 1 / STEEPEST and STEEPEST."""


class Recalibration(msgspec.Struct, frozen=True):
    """What scaling would do to one confidence of one arm. All numbers but `n_fit` are of the half that was not fitted.

    `temperature` divides the log-odds; `slope` and `offset` are Platt's. `before`, `after_temperature` and
    `after_platt` hold `ece`, `brier` and `nll`; the bins are the diagram after temperature scaling.
    """

    n_fit: int
    n: int
    temperature: float
    slope: float
    offset: float
    before: dict[str, Estimate]
    after_temperature: dict[str, Estimate]
    after_platt: dict[str, Estimate]
    bins: tuple[Bin, ...]


def recalibration(answers: Judged, seed: int) -> Recalibration | None:
    """Fit on one half of the clusters and report on the other; None where a half has too few answers."""
    fitted_half, reported_half = halves(answers, seed)
    if min(fitted_half.n, reported_half.n) < FEWEST:
        return None
    temperature = fit_temperature(fitted_half)
    slope, offset = fit_platt(fitted_half)
    cooled = scaled(reported_half, 1 / temperature, 0.0)
    return Recalibration(
        n_fit=fitted_half.n,
        n=reported_half.n,
        temperature=temperature,
        slope=slope,
        offset=offset,
        before=_scores(reported_half, seed),
        after_temperature=_scores(cooled, seed),
        after_platt=_scores(scaled(reported_half, slope, offset), seed),
        bins=bins(cooled, width_edges()),
    )


def halves(answers: Judged, seed: int) -> tuple[Judged, Judged]:
    """Two halves without a cluster in common."""
    first = np.random.default_rng(seed).permutation(answers.clusters) % 2 == 0
    chosen = first[answers.cluster]
    return _part(answers, chosen), _part(answers, ~chosen)


def _part(answers: Judged, rows: NDArray[np.bool_]) -> Judged:
    groups = answers.groups
    return judged(answers.confidence[rows], answers.right[rows], None if groups is None else groups[rows])


def scaled(answers: Judged, slope: float, offset: float) -> Judged:
    """The answers with confidence sigmoid(slope * log-odds + offset)."""
    return judged(expit(slope * log_odds(answers.confidence) + offset), answers.right, answers.groups)


def fit_temperature(answers: Judged) -> float:
    """The temperature with the highest likelihood, within [1 / STEEPEST, STEEPEST]."""
    odds, target = log_odds(answers.confidence), _targets(answers.right)
    bound = float(np.log(STEEPEST))
    found = minimize(
        lambda log_slope: _cross_entropy(np.exp(log_slope[0]) * odds, target), [0.0], bounds=[(-bound, bound)]
    )
    return float(np.exp(-found.x[0]))


def fit_platt(answers: Judged) -> tuple[float, float]:
    """Slope and offset with the highest likelihood."""
    odds, target = log_odds(answers.confidence), _targets(answers.right)
    found = minimize(
        lambda line: _cross_entropy(line[0] * odds + line[1], target),
        [0.0, float(logit(target.mean()))],
        jac=lambda line: _slopes(line[0] * odds + line[1], odds, target),
        method="BFGS",
    )
    return float(found.x[0]), float(found.x[1])


def log_odds(confidence: Floats) -> Floats:
    """Log-odds, of confidences held `FLOOR` away from 0 and 1."""
    return np.asarray(logit(np.clip(confidence, FLOOR, 1 - FLOOR)))


def _targets(right: Floats) -> Floats:
    """Platt's targets: each outcome as if one more of each kind had been seen."""
    hits = float(right.sum())
    return np.where(right > 0, (hits + 1) / (hits + 2), 1 / (right.size - hits + 2))


def _cross_entropy(odds: Floats, target: Floats) -> float:
    return float((np.logaddexp(0.0, odds) - target * odds).mean())


def _slopes(odds: Floats, by: Floats, target: Floats) -> Floats:
    residual = expit(odds) - target
    return np.array([(residual * by).mean(), residual.mean()])


def _scores(answers: Judged, seed: int) -> dict[str, Estimate]:
    return {"ece": ece_estimate(answers, draws(answers, seed)), **losses_of(answers, weighed(answers, seed))}
