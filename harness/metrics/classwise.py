"""Classwise ECE: whether each label's probability is right, not only that of the label that was said.

For each label, ECE of its probability against whether it is the gold one; averaged over labels (Kull et al. 2019, arXiv
1910.12656; Nixon et al. 2019 call it static calibration error). Over the same equal-width bins as ECE.
"""

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from harness.metrics.binning import bin_of, width_edges
from harness.metrics.draws import draws
from harness.metrics.ece import absolute
from harness.metrics.estimate import Estimate, nothing
from harness.metrics.gap import Gap
from harness.metrics.judged import SLACK, Floats, Ints, Judged


def classwise_ece(probabilities: Floats, gold: Ints) -> Gap:
    """Classwise ECE of label probabilities, shape (n, labels), against the places of the gold labels, shape (n,)."""
    n, labels = probabilities.shape
    if ((probabilities < -SLACK) | (probabilities > 1 + SLACK)).any():
        raise ValueError("a label probability lies outside [0, 1]; give probabilities, not log-probabilities or scores")
    edges = width_edges()
    bins = edges.size - 1
    flat = np.clip(probabilities, 0, 1).ravel()
    column = np.tile(np.arange(labels), n) * bins + bin_of(flat, edges)
    residual = (np.arange(labels)[None, :] == gold[:, None]).ravel() - flat
    moves = csr_array((residual / labels, (np.repeat(np.arange(n), labels), column)), shape=(n, labels * bins))
    even = np.bincount(column, minlength=labels * bins) / (n * labels)
    return Gap(moves, even, absolute)


def classwise(rows: Sequence[tuple[dict[str, float], str]], cluster: Sequence[str], seed: int) -> Estimate:
    """The classwise ECE of records' label probabilities and gold labels.

    No value where records do not all have the same labels: there is then no class to average over.
    """
    if not rows or any(labels.keys() != rows[0][0].keys() for labels, _ in rows):
        return nothing(len(rows))
    names = sorted(rows[0][0])
    places = {name: place for place, name in enumerate(names)}
    probabilities = np.array([[labels[name] for name in names] for labels, _ in rows])
    gap = classwise_ece(probabilities, np.array([places.get(gold, -1) for _, gold in rows]))
    number = np.unique(cluster, return_inverse=True)[1].astype(np.intp)
    order = Judged(np.zeros(len(rows)), np.zeros(len(rows)), number, int(number.max()) + 1, 0)
    return gap.estimate(draws(order, seed))
