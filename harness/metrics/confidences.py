"""The three named confidences of an arm, and which answers can be judged by them.

Left out of calibration: failed and unsupported requests and unlabelled examples, which cannot be right or wrong, and
answers cut by the budget, whose confidence is of something that was not finished. Answers without a confidence are left
out and counted.
"""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from harness.metrics.columns import Arm
from harness.metrics.judged import Floats, Judged, judged
from harness.metrics.quality import labelled, right

Confidence = Literal["label", "path", "raw"]
"""The three named confidences of a record; see `harness.record.Slim`."""

CONFIDENCES: tuple[Confidence, ...] = get_args(Confidence)


def confidence(arm: Arm, name: Confidence) -> Floats:
    """The confidence of each record, shape (n,); NaN is none."""
    return arm.number[f"{name}_confidence"]


def finished(arm: Arm) -> NDArray[np.bool_]:
    """Answers that calibration is about, with or without a confidence."""
    return labelled(arm) & ~arm.ended("truncated")


def judgeable(arm: Arm, name: Confidence) -> NDArray[np.bool_]:
    """Answers that calibration can use."""
    return finished(arm) & ~np.isnan(confidence(arm, name))


def judged_answers(arm: Arm, name: Confidence) -> Judged:
    """An arm's answers under one confidence; raises ValueError where a confidence is no probability."""
    rows = finished(arm)
    return judged(confidence(arm, name)[rows], right(arm)[rows], arm.clusters(rows))
