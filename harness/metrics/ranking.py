"""How well a confidence tells right answers from wrong ones, whatever its scale. A tie is a tie: equal confidences are
never put in an order, each metric is its mean over all orders of them.

All functions take the weights of right and of wrong answers at each distinct confidence, ascending, both of shape
(times, levels), and give `times` values. `by_level` makes them of answers.
"""

import numpy as np
from scipy.special import digamma

from harness.metrics.judged import Floats, Judged


def auroc(right: Floats, wrong: Floats) -> Floats:
    """The probability that a right answer is surer than a wrong one, a tie counting half (Hanley, McNeil 1982).

    NaN where all answers are right or all wrong: there is nothing to compare.
    """
    pairs = right.sum(axis=1) * wrong.sum(axis=1)
    below = np.cumsum(wrong, axis=1) - wrong / 2
    won = (right * below).sum(axis=1)
    return np.asarray(np.divide(won, pairs, out=np.full(len(right), np.nan), where=pairs > 0))


def aurc(right: Floats, wrong: Floats) -> Floats:
    """Area under the risk-coverage curve: the mean, over k = 1..n, of the error rate of the k surest answers.

    Geifman, El-Yaniv 2017 (arXiv 1705.08500). Within a level of m equal confidences, e of them wrong, after K surer
    answers with E errors, the expected error rate at K + j is (E + e j / m) / (K + j); its sum over j is
    e + (E - e K / m) (H(K + m) - H(K)) with the harmonic numbers H.
    """
    right, wrong = right[:, ::-1], wrong[:, ::-1]
    size = right + wrong
    upto = np.cumsum(size, axis=1)
    before = upto - size
    errors = np.cumsum(wrong, axis=1) - wrong
    rate = np.divide(wrong, size, out=np.zeros_like(size), where=size > 0)
    harmonic = digamma(upto + 1) - digamma(before + 1)
    return np.asarray((wrong + (errors - rate * before) * harmonic).sum(axis=1) / upto[:, -1])


def augrc(right: Floats, wrong: Floats) -> Floats:
    """Area under the generalised risk-coverage curve: the mean, over all coverages, of the probability that an answer
    is both kept and wrong (Traub et al. 2024, arXiv 2407.01032). Between levels the curve is straight, so that
    AUGRC = (1 - AUROC) * accuracy * (1 - accuracy) + (1 - accuracy)^2 / 2.
    """
    right, wrong = right[:, ::-1], wrong[:, ::-1]
    size = right + wrong
    errors = np.cumsum(wrong, axis=1)
    return np.asarray((size * (errors - wrong / 2)).sum(axis=1) / size.sum(axis=1) ** 2)


def by_level(answers: Judged) -> tuple[Floats, Floats]:
    """How many answers were right and wrong at each distinct confidence, ascending: two of shape (1, levels)."""
    first = np.unique(answers.confidence, return_index=True)[1]
    right = np.add.reduceat(answers.right, first)[None, :]
    return right, np.diff([*first, answers.n])[None, :] - right
