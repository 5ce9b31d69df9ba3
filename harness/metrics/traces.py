"""What only whole records tell of an arm: times between tokens, classwise calibration, what the model wanted."""

from collections.abc import Iterable

import numpy as np

from harness.metrics.classwise import classwise
from harness.metrics.estimate import Estimate
from harness.metrics.judged import Floats, Ints
from harness.metrics.latency import quantiles
from harness.metrics.masking import Wanted, Wishing
from harness.metrics.whole import Whole


class Traces:
    """Collects the whole records of one arm. `greedy`: every token was the most likely one allowed."""

    def __init__(self, greedy: bool) -> None:
        self._wishing = Wishing(greedy)
        self._gaps: list[Floats] = []
        self._blocks: list[int] = []
        self._labels: list[tuple[dict[str, float], str]] = []
        self._clusters: list[str] = []

    def add(self, record: Whole) -> None:
        if record.outcome in ("failed", "unsupported"):
            return
        self._wishing.add(record)
        for part in record.parts:
            if part.result.timing is not None and len(part.result.timing.token_s) > 1:
                self._gaps.append(np.diff(np.array(part.result.timing.token_s)))
                self._blocks.append(record.block)
        if record.labels and isinstance(record.gold, str):
            self._labels.append((record.labels, record.gold))
            self._clusters.append(record.cluster)

    def between_tokens(self) -> tuple[Floats, Ints]:
        """All times between tokens, and the blocks they were in."""
        if not self._gaps:
            return np.empty(0), np.empty(0, dtype=np.intp)
        return np.concatenate(self._gaps), np.repeat(self._blocks, [gaps.size for gaps in self._gaps])

    def wanted(self) -> Wanted | None:
        return self._wishing.wanted()

    def metrics(self, seed: int) -> dict[str, Estimate]:
        """The metrics that need whole records, by name."""
        found = {f"itl_s_{level}": estimate for level, estimate in quantiles(*self.between_tokens()).items()}
        return found | {
            "wanted_forbidden": self._wishing.share(),
            "label_classwise_ece": classwise(self._labels, self._clusters, seed),
        }


def collect(records: Iterable[Whole], greedy: bool) -> dict[str, Traces]:
    """The traces of each arm that occurs."""
    arms: dict[str, Traces] = {}
    for record in records:
        if record.arm not in arms:
            arms[record.arm] = Traces(greedy)
        arms[record.arm].add(record)
    return arms
