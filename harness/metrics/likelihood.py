"""The negative log-likelihood of outcomes under their confidence."""

import numpy as np

from harness.metrics.judged import Floats

FLOOR = 1e-7
"""Probabilities are known to float32; nearer to 0 or 1 they are taken as this near, so that one wrong answer said with
confidence 1.0 costs 16 nats and not infinitely many."""

WORST = float(-np.log(FLOOR))


def losses(confidence: Floats, right: Floats) -> Floats:
    """-log of the probability given to each outcome, in nats, in [0, `WORST`], shape (n,)."""
    safe = np.clip(confidence, FLOOR, 1 - FLOOR)
    return np.asarray(-np.where(right > 0, np.log(safe), np.log1p(-safe)))
