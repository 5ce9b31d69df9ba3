"""The Brier score and its parts (Brier 1950; Murphy 1973).

Over the same bins as ECE, reliability - resolution + uncertainty is exactly the Brier score of confidences replaced by
their bin's mean; what is left of Brier is spread within bins.
"""

from collections.abc import Callable

import numpy as np

from harness.metrics.binning import bin_of
from harness.metrics.estimate import Estimate
from harness.metrics.gap import Gap, placed
from harness.metrics.judged import Floats, Judged


def squared_errors(confidence: Floats, right: Floats) -> Floats:
    """The squared distance between confidence and outcome of each answer; their mean is the Brier score."""
    return np.asarray((confidence - right) ** 2)


def reliability(answers: Judged, edges: Floats) -> Gap:
    """The part that comes from miscalibration: squared gaps of the bins, by their share. Lower is better."""
    return _parts(answers, answers.right - answers.confidence, edges, lambda vectors: vectors, 1.0)


def resolution(answers: Judged, edges: Floats) -> Gap:
    """How far the bins' accuracies lie from the whole accuracy: what telling right from wrong is worth."""
    share = _shares(answers, edges)
    return _parts(
        answers,
        answers.right - answers.right.mean(),
        edges,
        lambda vectors: vectors - share * vectors.sum(axis=1, keepdims=True),
        0.25,
    )


def uncertainty(accuracy: Estimate) -> Estimate:
    """accuracy * (1 - accuracy): the Brier score of always saying the accuracy. Its ends follow from accuracy's."""
    if accuracy.value is None or accuracy.low is None or accuracy.high is None:
        return accuracy
    value, left, right = (p * (1 - p) for p in (accuracy.value, accuracy.low, accuracy.high))
    top = 0.25 if accuracy.low <= 0.5 <= accuracy.high else max(left, right)
    return Estimate(value, min(left, right), top, accuracy.n)


def _parts(answers: Judged, residual: Floats, edges: Floats, project: Callable[[Floats], Floats], most: float) -> Gap:
    share = _shares(answers, edges)
    safe = np.where(share > 0, share, 1.0)

    def norm(vectors: Floats) -> Floats:
        return np.asarray((project(vectors) ** 2 / safe).sum(axis=1))

    return Gap(placed(residual, bin_of(answers.confidence, edges), share.size), share, norm, most)


def _shares(answers: Judged, edges: Floats) -> Floats:
    return np.asarray(np.bincount(bin_of(answers.confidence, edges), minlength=edges.size - 1) / answers.n)
