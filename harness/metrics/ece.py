"""Expected calibration error: the mean gap between confidence and accuracy over bins.

ECE = sum over bins of (share of answers in the bin) * |accuracy in it - mean confidence in it|.
Naeini, Cooper, Hauskrecht 2015 (AAAI) and Guo et al. 2017 (arXiv 1706.04599) for equal width; Nixon et al. 2019 (arXiv
1904.01685) for equal mass. Empty bins add nothing. The result is in [0, 1].
"""

import numpy as np
from scipy.special import erf

from harness.metrics.binning import bin_of
from harness.metrics.gap import Gap, placed
from harness.metrics.judged import Floats, Judged


def ece(answers: Judged, edges: Floats) -> Gap:
    """ECE over the bins between `edges` (see `binning`), of shape (bins + 1,)."""
    column, columns = bin_of(answers.confidence, edges), edges.size - 1
    even = np.bincount(column, minlength=columns) / answers.n
    return Gap(placed(answers.right - answers.confidence, column, columns), even, absolute)


def absolute(vectors: Floats) -> Floats:
    """The sum of absolute values, shape (times, m) -> (times,)."""
    return np.asarray(np.abs(vectors).sum(axis=1))


def ece_debiased(answers: Judged, edges: Floats) -> float:
    """ECE less what chance alone adds to it, and never below 0.

    A gap is an absolute value, so noise in a bin's accuracy makes it larger on average. Kumar, Liang, Ma 2019 (arXiv
    1909.10155) estimate by how much: take each bin's accuracy as normal with its binomial variance, and subtract the
    growth of the error under it. The mean of |normal| is known in closed form, so nothing is simulated.
    """
    column, columns = bin_of(answers.confidence, edges), edges.size - 1
    total = np.bincount(column, minlength=columns)
    count = np.maximum(total, 1)
    accuracy = np.bincount(column, answers.right, columns) / count
    gap = np.abs(accuracy - np.bincount(column, answers.confidence, columns) / count)
    noisy = folded_mean(gap, np.sqrt(np.clip(accuracy * (1 - accuracy), 0, None) / count))
    return max(float((total * (2 * gap - noisy)).sum() / answers.n), 0.0)


def folded_mean(mean: Floats, sigma: Floats) -> Floats:
    """The mean of |x| for x normal (Leone, Nelson, Nottingham 1961)."""
    safe = np.where(sigma > 0, sigma, 1.0)
    ratio = mean / safe
    folded = safe * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2) + mean * erf(ratio / np.sqrt(2))
    return np.asarray(np.where(sigma > 0, folded, np.abs(mean)))
