"""Records as columns: one array a field and arm, numbered alike over all arms so that arms can be paired by example.

Built in one pass; a record takes about 200 bytes, and the cost is linear in the records.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from harness.metrics.judged import Floats, Ints
from harness.record import Outcome, Slim, read_slim

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
CHUNK = 8192
"""Records held as objects before they become columns."""

NUMBERS = (
    *("right", "score", "label_confidence", "path_confidence", "raw_confidence", "mass", "forced"),
    *("sent_s", "ttft_s", "e2e_s", "tpot_s"),
)
COSTS = ("forward_s", "mask_s", "wait_s", "apply_s", "compile_s")
COUNTS = ("block", "session", "tokens", "attempts", "trivial")


@dataclass(frozen=True)
class Arm:
    """The records of one arm, ascending by example. Every array has shape (n,).

    `example` and `cluster` number the examples and clusters of all arms, in the order of their names, so that nothing
    depends on the order of records; `cluster` is None where each example is its own. `outcome` is a place in
    `OUTCOMES`. `number` maps the names in `NUMBERS` and `COSTS` to floats, NaN where a record has None (`right` is 0
    or 1); `count` maps those in `COUNTS` to whole numbers. `flags` counts the records that carry each flag.
    """

    example: Ints
    cluster: Ints | None
    outcome: NDArray[np.int8]
    number: dict[str, Floats]
    count: dict[str, NDArray[np.int64]]
    flags: dict[str, int]

    @property
    def n(self) -> int:
        return int(self.example.size)

    def clusters(self, rows: NDArray[np.bool_] | Ints) -> Ints | None:
        """The clusters of some records; None where each is its own."""
        return None if self.cluster is None else self.cluster[rows]

    def ended(self, *outcomes: Outcome) -> NDArray[np.bool_]:
        """Which records have one of these outcomes."""
        return np.isin(self.outcome, [OUTCOMES.index(outcome) for outcome in outcomes])

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Which requests brought an answer of any kind."""
        return ~self.ended("failed", "unsupported")


@dataclass(frozen=True)
class Columns:
    """All arms of a run. `clusters` is the number of different clusters; where no two examples share one, it is that
    of examples, and examples count as independent."""

    arms: dict[str, Arm]
    examples: int
    clusters: int

    @property
    def clustered(self) -> bool:
        return self.clusters < self.examples


def from_records(path: Path) -> Columns:
    """The columns of a `records.jsonl`."""
    return from_slims(read_slim(path))


def from_slims(records: Iterable[Slim], order: Sequence[str] = ()) -> Columns:
    """Columns of records in any order; arms come in `order`, those not named there as they are first seen.

    Raises ValueError where an arm has two records of one example: they could not be paired.
    """
    examples: dict[str, int] = {}
    clusters: dict[str, int] = {}
    arms: dict[str, _Builder] = {}
    for record in records:
        if (builder := arms.get(record.arm)) is None:
            builder = arms[record.arm] = _Builder(examples, clusters)
        builder.add(record)
    for builder in arms.values():
        builder.flush()
    ordered = [arm for arm in order if arm in arms] + [arm for arm in arms if arm not in order]
    clustered = len(clusters) < len(examples)
    ranks = (_ranks(examples), _ranks(clusters) if clustered else None)
    finished = {arm: arms[arm].finish(arm, *ranks) for arm in ordered}
    return Columns(finished, len(examples), len(clusters))


class _Builder:
    """Turns records into columns a chunk at a time."""

    def __init__(self, examples: dict[str, int], clusters: dict[str, int]) -> None:
        self._examples, self._clusters = examples, clusters
        self._waiting: list[Slim] = []
        self._chunks: list[dict[str, NDArray[np.generic]]] = []
        self._flags: Counter[str] = Counter()

    def add(self, record: Slim) -> None:
        self._waiting.append(record)
        if record.flags:
            self._flags.update(set(record.flags))
        if len(self._waiting) == CHUNK:
            self.flush()

    def finish(self, arm: str, examples: Ints, clusters: Ints | None) -> Arm:
        """The columns, given the ranks of examples and of clusters by name; None where each example is a cluster."""
        columns = {name: np.concatenate([chunk.pop(name) for chunk in self._chunks]) for name in list(self._chunks[0])}
        columns["example"] = examples[columns["example"]]
        order = np.argsort(columns["example"], kind="stable")
        example = columns["example"][order]
        if (twice := np.flatnonzero(example[1:] == example[:-1])).size:
            name = sorted(self._examples)[int(example[twice[0]])]
            raise ValueError(
                f"records: arm {arm} has more than one record of example {name!r} "
                f"({twice.size} such); an arm has one record an example: give repeats their own ids and one cluster"
            )
        return Arm(
            example=example,
            cluster=None if clusters is None else clusters[columns["cluster"][order]],
            outcome=columns["outcome"][order].astype(np.int8),
            number={name: columns[name][order].astype(np.float64) for name in (*NUMBERS, *COSTS)},
            count={name: columns[name][order].astype(np.int64) for name in COUNTS},
            flags=dict(sorted(self._flags.items())),
        )

    def flush(self) -> None:
        """Turn what waits into columns; examples and clusters are all numbered only after every builder's last one."""
        records = self._waiting
        if not records:
            return
        columns = {
            "example": _numbered(self._examples, records, attrgetter("example")),
            "cluster": _numbered(self._clusters, records, attrgetter("cluster")),
            "outcome": np.array([_PLACE[record.outcome] for record in records], dtype=np.int8),
        }
        costs = [record.cost for record in records]
        columns |= {name: np.array(list(map(attrgetter(name), records)), dtype=np.float64) for name in NUMBERS}
        columns |= {name: np.array(list(map(attrgetter(name), costs)), dtype=np.float64) for name in COSTS}
        columns |= {name: np.array(list(map(attrgetter(name), records)), dtype=np.int32) for name in COUNTS}
        self._chunks.append(columns)
        self._waiting = []


_PLACE: dict[Outcome, int] = {outcome: place for place, outcome in enumerate(OUTCOMES)}


def _ranks(numbers: dict[str, int]) -> Ints:
    """The place of each number when its name is sorted, shape (names,)."""
    ranks = np.empty(len(numbers), dtype=np.intp)
    ranks[[numbers[name] for name in sorted(numbers)]] = np.arange(len(numbers))
    return ranks


def _numbered(numbers: dict[str, int], records: Sequence[Slim], name: Callable[[Slim], str]) -> NDArray[np.generic]:
    return np.array([numbers.setdefault(name(record), len(numbers)) for record in records], dtype=np.int32)
