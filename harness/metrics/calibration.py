"""All calibration metrics of one arm under one confidence."""

import numpy as np

from harness.metrics.binning import mass_edges, width_edges
from harness.metrics.brier import reliability, resolution, squared_errors, uncertainty
from harness.metrics.draws import Draw, draws, variance
from harness.metrics.ece import ece, ece_debiased
from harness.metrics.estimate import Estimate, nothing
from harness.metrics.intervals import bounded, bounded_mean, share
from harness.metrics.judged import Judged
from harness.metrics.likelihood import WORST, losses
from harness.metrics.ranking import augrc, aurc, auroc
from harness.metrics.smooth_ece import FINE, smooth_ece

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
    found = _gaps(answers, resamples) | _means(answers) | _ranks(answers, resamples)
    return {name: found[name] for name in NAMES}


def ece_estimate(answers: Judged, resamples: tuple[Draw, ...]) -> Estimate:
    """ECE over bins of equal width, with its interval."""
    return ece(answers, width_edges()).estimate(resamples, reach=_unseen(answers, share(answers.right, answers.groups)))


def _gaps(answers: Judged, resamples: tuple[Draw, ...]) -> dict[str, Estimate]:
    width, mass = width_edges(), mass_edges(answers.confidence)
    accuracy = share(answers.right, answers.groups)
    unseen = _unseen(answers, accuracy)
    spread = uncertainty(accuracy)
    equal_mass = ece(answers, mass)
    return {
        "ece": ece_estimate(answers, resamples),
        "ece_mass": equal_mass.estimate(resamples, reach=unseen),
        "ece_debiased": equal_mass.estimate(resamples, value=ece_debiased(answers, mass), reach=unseen),
        "smooth_ece": smooth_ece(answers).estimate(resamples, value=smooth_ece(answers, FINE).value(), reach=unseen),
        "brier_reliability": reliability(answers, width).estimate(resamples, reach=unseen**2),
        "brier_resolution": resolution(answers, width).estimate(
            resamples, reach=(spread.high or 0.0) if unseen else 0.0
        ),
        "brier_uncertainty": spread,
    }


def _unseen(answers: Judged, accuracy: Estimate) -> float:
    """Where all were right (or all wrong), no resample can show the other outcome; then a gap may be as wide as that
    between mean confidence and the far end of accuracy's own interval. 0 where both outcomes were seen."""
    if accuracy.low is None or accuracy.high is None or 0 < answers.right.mean() < 1:
        return 0.0
    confidence = float(answers.confidence.mean())
    return max(abs(accuracy.low - confidence), abs(accuracy.high - confidence))


def _means(answers: Judged) -> dict[str, Estimate]:
    return {
        "brier": bounded_mean(squared_errors(answers), answers.groups),
        "nll": bounded_mean(losses(answers.confidence, answers.right), answers.groups, 0.0, WORST),
        "confidence": bounded_mean(answers.confidence, answers.groups),
    }


def _ranks(answers: Judged, resamples: tuple[Draw, ...]) -> dict[str, Estimate]:
    once = np.ones((1, answers.n))
    rarer = int(min(answers.right.sum(), answers.n - answers.right.sum()))
    found = {
        name: bounded(
            float(metric(answers, once)[0]), variance(metric, answers, resamples), answers.n, answers.clusters
        )
        for name, metric in (("aurc", aurc), ("augrc", augrc))
    }
    area = float(auroc(answers, once)[0])
    if np.isnan(area):
        return found | {"auroc": nothing(answers.n)}
    groups = min(rarer, answers.clusters)
    return found | {"auroc": bounded(area, variance(auroc, answers, resamples), answers.n, groups)}
