"""Differences between two arms (or two runs) on the same examples, tested in pairs."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.metrics.brier import squared_errors
from harness.metrics.columns import Arm
from harness.metrics.confidences import CONFIDENCES, confidence, judgeable
from harness.metrics.judged import Ints
from harness.metrics.paired_blocks import SPEEDS, BlockSpeeds, log_rates
from harness.metrics.quality import labelled, right, score, valid
from harness.metrics.statistics import Tested, holm, log_ratios, paired_losses, paired_means, paired_outcomes

Test = Literal["mcnemar", "bootstrap", "blocks"]
"""`mcnemar`: exact, on the examples where the two disagree. `bootstrap`: paired, over examples (or their clusters).
`blocks`: t test over the log ratios of paired blocks."""


class Pair(msgspec.Struct, frozen=True):
    """`arm` against `against` in one metric.

    `kind` says what `value`, `low`, `high` and `mdd` are: a `difference` (arm minus against; 0 is no difference) or a
    `ratio` (arm over against; 1 is no difference). `n` counts the paired observations: examples both arms answered, or
    blocks both ran whole. `p` is two-sided; `p_holm` is adjusted over the pairs and metrics of a family: of quality
    (accuracy, score, validity), of calibration, or of speed. `mdd` is the smallest true difference (or ratio above 1)
    that this n would have found at the 5% level in 80% of such runs, tested alone.
    All but `n` are None where they cannot be had.
    """

    metric: str
    arm: str
    against: str
    kind: Literal["difference", "ratio"]
    test: Test
    value: float | None
    low: float | None
    high: float | None
    n: int
    p: float | None
    p_holm: float | None
    mdd: float | None


class Side(msgspec.Struct, frozen=True):
    """One arm of a pair: its name, its columns, its speeds by block."""

    name: str
    arm: Arm
    speeds: BlockSpeeds


def compare(pairs: Iterable[tuple[Side, Side]], seed: int) -> tuple[Pair, ...]:
    """Each first side against its second in every metric that both have; p-values adjusted within families."""
    asked = list(pairs)
    families = (
        [pair for first, second in asked for pair in _quality(first, second, seed)],
        [pair for first, second in asked for pair in _calibration(first, second, seed)],
        [pair for first, second in asked for pair in _speed(first, second)],
    )
    return tuple(pair for family in families for pair in _adjusted(family))


def _quality(first: Side, second: Side, seed: int) -> list[Pair]:
    one, two, cluster = _both(first.arm, second.arm, labelled)
    came = _both(first.arm, second.arm, lambda arm: ~arm.ended("failed"))
    outcomes = {
        "accuracy": (right(first.arm)[one], right(second.arm)[two], cluster),
        "validity": (valid(first.arm)[came[0]], valid(second.arm)[came[1]], came[2]),
    }
    found = []
    for metric, (ours, theirs, clusters) in outcomes.items():
        test: Test = "mcnemar" if clusters is None else "bootstrap"
        found += _pair(metric, first, second, test, paired_outcomes(ours, theirs, clusters, seed))
    credit, other = score(first.arm)[one], score(second.arm)[two]
    if np.array_equal(credit, outcomes["accuracy"][0]) and np.array_equal(other, outcomes["accuracy"][1]):
        return found
    return found + _pair("score", first, second, "bootstrap", paired_means(credit - other, cluster, seed))


def _calibration(first: Side, second: Side, seed: int) -> list[Pair]:
    found = []
    for name in CONFIDENCES:
        one, two, cluster = _both(first.arm, second.arm, partial(judgeable, name=name))
        ours, theirs = confidence(first.arm, name)[one], confidence(second.arm, name)[two]
        hits, others = right(first.arm)[one], right(second.arm)[two]
        seen = squared_errors(ours, hits) - squared_errors(theirs, others)
        unseen = squared_errors(ours, 1 - hits) - squared_errors(theirs, 1 - others)
        found += _pair(f"{name}_brier", first, second, "bootstrap", paired_losses(seen, unseen, cluster, seed))
    return found


def _speed(first: Side, second: Side) -> list[Pair]:
    logs = log_rates(first.speeds, second.speeds)
    return [pair for name in SPEEDS for pair in _pair(name, first, second, "blocks", log_ratios(logs[name]))]


def _both(first: Arm, second: Arm, wanted: Callable[[Arm], NDArray[np.bool_]]) -> tuple[Ints, Ints, Ints | None]:
    """The rows of the examples that are wanted in both arms, and their clusters."""
    mine, others = np.flatnonzero(wanted(first)), np.flatnonzero(wanted(second))
    _, one, two = np.intersect1d(first.example[mine], second.example[others], assume_unique=True, return_indices=True)
    return mine[one], others[two], first.clusters(mine[one])


def _pair(metric: str, first: Side, second: Side, test: Test, tested: Tested) -> list[Pair]:
    """No pair where there is nothing to pair."""
    if tested.n == 0:
        return []
    kind: Literal["difference", "ratio"] = "ratio" if test == "blocks" else "difference"
    value, low, high, n, p, mdd = (getattr(tested, field) for field in ("value", "low", "high", "n", "p", "mdd"))
    return [Pair(metric, first.name, second.name, kind, test, value, low, high, n, p, None, mdd)]


def _adjusted(family: Sequence[Pair]) -> list[Pair]:
    tested = [pair for pair in family if pair.p is not None]
    adjusted = dict(zip(map(id, tested), holm([pair.p or 0.0 for pair in tested]), strict=True))
    return [msgspec.structs.replace(pair, p_holm=adjusted.get(id(pair))) for pair in family]
