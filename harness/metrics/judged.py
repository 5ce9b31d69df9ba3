"""Answers that were judged and carry a confidence: what every calibration metric is computed from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

SLACK = 1e-4
"""How far outside [0, 1] a confidence may lie: a sum of float32 exponentials does not add up to 1 exactly."""


@dataclass(frozen=True)
class Judged:
    """Confidences in [0, 1], ascending, and whether each answer was right (0.0 or 1.0), both of shape (n,).

    `cluster` (n,) numbers what was drawn together, from 0 to `clusters` - 1; where examples are independent each is its
    own. `without` counts the answers left out because they have no confidence.
    """

    confidence: Floats
    right: Floats
    cluster: Ints
    clusters: int
    without: int

    @property
    def n(self) -> int:
        return int(self.confidence.size)

    @property
    def groups(self) -> Ints | None:
        """`cluster`, or None where each answer is its own."""
        return None if self.clusters == self.n else self.cluster


def judged(
    confidence: Sequence[float | None] | Floats, right: ArrayLike, cluster: NDArray[Any] | None = None
) -> Judged:
    """Order answers by confidence. None and NaN are no confidence; raises ValueError beyond `SLACK` outside [0, 1]."""
    given = np.asarray(confidence, dtype=np.float64)
    outcome = np.asarray(right, dtype=np.float64)
    has = ~np.isnan(given)
    kept = _clipped(given[has])
    order = np.argsort(kept, kind="stable")
    names, numbers = (order, np.arange(kept.size)) if cluster is None else _renumbered(np.asarray(cluster)[has][order])
    return Judged(
        confidence=kept[order],
        right=outcome[has][order],
        cluster=numbers,
        clusters=int(names.size),
        without=int(given.size - has.sum()),
    )


def _renumbered(cluster: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    names, numbers = np.unique(cluster, return_inverse=True)
    return names, numbers.astype(np.intp)


def _clipped(confidence: Floats) -> Floats:
    outside = (confidence < -SLACK) | (confidence > 1 + SLACK)
    if outside.any():
        raise ValueError(
            f"a confidence is a probability in [0, 1], got {confidence[outside][0]!r} "
            f"({int(outside.sum())} such values); give probabilities, not log-probabilities or scores"
        )
    return np.clip(confidence, 0.0, 1.0)
