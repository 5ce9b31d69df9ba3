"""How well a confidence tells right answers from wrong ones, whatever its scale. A tie is a tie: equal confidences are
never put in an order, each metric is its mean over all orders of them.

All functions take weights of shape (times, n), resampling counts, and give `times` values.
"""

import numpy as np
from scipy.special import digamma

from harness.metrics.judged import Floats, Ints, Judged


def auroc(answers: Judged, weights: Floats) -> Floats:
    """The probability that a right answer is surer than a wrong one, a tie counting half (Hanley, McNeil 1982).

    NaN where all answers are right or all wrong: there is nothing to compare.
    """
    right, wrong = _by_level(answers, weights)
    pairs = right.sum(axis=1) * wrong.sum(axis=1)
    below = np.cumsum(wrong, axis=1) - wrong / 2
    won = (right * below).sum(axis=1)
    return np.asarray(np.divide(won, pairs, out=np.full(len(weights), np.nan), where=pairs > 0))


def aurc(answers: Judged, weights: Floats) -> Floats:
    """Area under the risk-coverage curve: the mean, over k = 1..n, of the error rate of the k surest answers.

    Geifman, El-Yaniv 2017 (arXiv 1705.08500). Within a level of m equal confidences, e of them wrong, after K surer
    answers with E errors, the expected error rate at K + j is (E + e j / m) / (K + j); its sum over j is
    e + (E - e K / m) (H(K + m) - H(K)) with the harmonic numbers H.
    """
    right, wrong = (part[:, ::-1] for part in _by_level(answers, weights))
    size = right + wrong
    upto = np.cumsum(size, axis=1)
    before = upto - size
    errors = np.cumsum(wrong, axis=1) - wrong
    rate = np.divide(wrong, size, out=np.zeros_like(size), where=size > 0)
    harmonic = digamma(upto + 1) - digamma(before + 1)
    return np.asarray((wrong + (errors - rate * before) * harmonic).sum(axis=1) / upto[:, -1])


def augrc(answers: Judged, weights: Floats) -> Floats:
    """Area under the generalised risk-coverage curve: the mean, over all coverages, of the probability that an answer
    is both kept and wrong (Traub et al. 2024, arXiv 2407.01032). Between levels the curve is straight, so that
    AUGRC = (1 - AUROC) * accuracy * (1 - accuracy) + (1 - accuracy)^2 / 2.
    """
    right, wrong = (part[:, ::-1] for part in _by_level(answers, weights))
    size = right + wrong
    errors = np.cumsum(wrong, axis=1)
    return np.asarray((size * (errors - wrong / 2)).sum(axis=1) / size.sum(axis=1) ** 2)


def _by_level(answers: Judged, weights: Floats) -> tuple[Floats, Floats]:
    """Weight of right and of wrong answers at each distinct confidence, ascending: two of (times, levels)."""
    first = _level_starts(answers.confidence)
    right = np.add.reduceat(weights * answers.right, first, axis=1)
    return right, np.add.reduceat(weights, first, axis=1) - right


def _level_starts(confidence: Floats) -> Ints:
    return np.flatnonzero(np.concatenate([[True], confidence[1:] != confidence[:-1]]))
