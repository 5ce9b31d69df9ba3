"""All calibration metrics of one arm under one confidence."""

from collections.abc import Callable

import numpy as np

from harness.metrics.bayes import ByLevel, Weighed, weighed
from harness.metrics.binning import bin_of, mass_edges, width_edges
from harness.metrics.brier import reliability, resolution, squared_errors, uncertainty
from harness.metrics.draws import Draw, draws
from harness.metrics.ece import ece, ece_debiased
from harness.metrics.estimate import Estimate, nothing
from harness.metrics.gap import SEEN, Reach
from harness.metrics.intervals import bounded_mean, share, widening
from harness.metrics.judged import Floats, Judged
from harness.metrics.likelihood import WORST, losses
from harness.metrics.ranking import augrc, aurc, auroc, by_level
from harness.metrics.smooth_ece import FINE, smooth_ece

FEW = 10
"""Answers with the rarer outcome that show something of how far it is told from the other."""
NAMES = (
    "ece",
    "ece_mass",
    "ece_debiased",
    "smooth_ece",
    "brier",
    "brier_reliability",
    "brier_resolution",
    "brier_uncertainty",
    "nll",
    "auroc",
    "aurc",
    "augrc",
    "confidence",
)


def calibration(answers: Judged, seed: int) -> dict[str, Estimate]:
    """`NAMES` -> estimates: none has a value where there are no answers, nor `auroc` where all are right or wrong."""
    if answers.n == 0:
        return dict.fromkeys(NAMES, nothing())
    resamples = draws(answers, seed)
    half = weighed(answers, seed)
    found = gaps(answers, resamples) | losses_of(answers, half) | areas(answers, half)
    found["confidence"] = bounded_mean(answers.confidence, answers.groups)
    return {name: found[name] for name in NAMES}


def ece_estimate(answers: Judged, resamples: tuple[Draw, ...]) -> Estimate:
    """ECE over bins of equal width, with its interval."""
    unseen = _unseen(answers, share(answers.right, answers.groups))
    return ece(answers, width_edges()).estimate(resamples, _widening(answers), unseen)


def gaps(answers: Judged, resamples: tuple[Draw, ...]) -> dict[str, Estimate]:
    """ECE of all kinds, and the parts of Brier."""
    width, mass = width_edges(), mass_edges(answers.confidence)
    accuracy = share(answers.right, answers.groups)
    unseen, widen = _unseen(answers, accuracy), _widening(answers)
    spread = uncertainty(accuracy)
    equal_mass = ece(answers, mass)
    fine = smooth_ece(answers, FINE).value()
    return {
        "ece": ece_estimate(answers, resamples),
        "ece_mass": equal_mass.estimate(resamples, widen, unseen),
        "ece_debiased": equal_mass.estimate(resamples, widen, unseen, ece_debiased(answers, mass)),
        "smooth_ece": smooth_ece(answers).estimate(resamples, widen, unseen, fine),
        "brier_reliability": reliability(answers, width).estimate(resamples, widen, unseen.squared()),
        "brier_resolution": _resolution(answers, resamples, spread),
        "brier_uncertainty": spread,
    }


def _unseen(answers: Judged, accuracy: Estimate) -> Reach:
    """Where all were right (or all wrong), no resample can show the other outcome; a gap may then be anything between
    mean confidence and accuracy's own interval."""
    if accuracy.low is None or accuracy.high is None or _rarer(answers):
        return SEEN
    confidence = float(answers.confidence.mean())
    ends = abs(accuracy.low - confidence), abs(accuracy.high - confidence)
    return Reach(0.0 if accuracy.low <= confidence <= accuracy.high else min(ends), max(ends))


def _resolution(answers: Judged, resamples: tuple[Draw, ...], spread: Estimate) -> Estimate:
    """Over one bin resolution is 0 and no resample shows another, so there is no interval. Few answers with the
    rarer outcome cannot show how far it is told from the other: resolution may then be all of the uncertainty."""
    edges = width_edges()
    if np.unique(bin_of(answers.confidence, edges)).size == 1:
        return Estimate(0.0, None, None, answers.n)
    reach = Reach(0.0, spread.high or 0.0) if _rarer(answers) < FEW else SEEN
    return resolution(answers, edges).estimate(resamples, _widening(answers), reach)


def losses_of(answers: Judged, resamples: Weighed) -> dict[str, Estimate]:
    """`brier` and `nll`."""
    return {
        "brier": _mean_loss(squared_errors, answers, resamples, 1.0),
        "nll": _mean_loss(losses, answers, resamples, WORST),
    }


def _mean_loss(loss: Callable[[Floats, Floats], Floats], answers: Judged, resamples: Weighed, most: float) -> Estimate:
    """The mean of a loss in [0, most], given confidences and outcomes."""
    right, wrong = (
        resamples.levels.mean(loss(answers.confidence, np.full(answers.n, outcome))) for outcome in (1.0, 0.0)
    )
    return resamples.estimate(
        float(loss(answers.confidence, answers.right).mean()),
        lambda rights, wrongs: np.asarray((rights @ right + wrongs @ wrong) / answers.n),
        answers.clusters,
        0.0,
        most,
    )


def areas(answers: Judged, resamples: Weighed) -> dict[str, Estimate]:
    """`auroc`, `aurc` and `augrc`.

    AUROC and AURC hang on the answers with the rarer outcome alone, so their variance is known as from so many (of five
    at least: half an answer of each outcome is in every resample).
    """
    seen, few = by_level(answers), max(_rarer(answers), 5)

    def area(metric: ByLevel, groups: int) -> Estimate:
        return resamples.estimate(float(metric(*seen)[0]), metric, groups)

    return {
        "auroc": area(auroc, few) if 0 < answers.right.mean() < 1 else nothing(answers.n),
        "aurc": area(aurc, few),
        "augrc": area(augrc, answers.clusters),
    }


def _rarer(answers: Judged) -> int:
    """How many answers had the rarer of the two outcomes, at most as many as there are clusters."""
    hits = int(answers.right.sum())
    return min(hits, answers.n - hits, answers.clusters)


def _widening(answers: Judged) -> float:
    """How much wider than resamples show: what varies is mostly the answers with the rarer outcome, so Student's t of
    their number, of five at least."""
    return widening(max(_rarer(answers), 5))
