"""Paired comparisons put in order: which differences are established, and between which arms none is."""

from collections.abc import Mapping, Sequence

import msgspec

from harness.metrics.pairs import Pair
from harness.metrics.quality import Counts
from harness.report import numbers
from harness.report.reading import style_of

SIGNIFICANT = 0.05


class Group(msgspec.Struct, frozen=True):
    """The arms established to have more than `lower`, each as a pair with that arm first, in the order of the report:
    among themselves they are not ranked."""

    lower: str
    pairs: tuple[Pair, ...]


def is_established(pair: Pair) -> bool:
    """Whether the adjusted test finds a difference at the 5% level."""
    return pair.p_holm is not None and pair.p_holm < SIGNIFICANT


def is_testable(pair: Pair) -> bool:
    """Whether a test could have found any difference: among fewer than six examples none can be established, however
    large."""
    return pair.p is not None and (pair.test == "blocks" or pair.mdd is not None)


def outside(pair: Pair, counts: Mapping[str, Counts]) -> int:
    """How many examples that one of the two arms was asked are not in their comparison: one of them brought no answer
    to it that could be compared. 0 for blocks."""
    if pair.test == "blocks":
        return 0
    asked = [
        counts[arm].n - (0 if pair.metric == "validity" else counts[arm].unlabelled) for arm in (pair.arm, pair.against)
    ]
    return max(max(asked) - pair.n, 0)


def hangs_on_outside(pair: Pair, counts: Mapping[str, Counts]) -> bool:
    """Whether a difference in shares would be gone if the examples outside had all gone against it."""
    return pair.value is not None and abs(pair.value) * pair.n <= outside(pair, counts)


def lower_groups(pairs: Sequence[Pair], order: Sequence[str]) -> list[Group]:
    """Established differences of one metric by the arm that has less, the arm with most above it first."""
    found: dict[str, list[Pair]] = {}
    for pair in pairs:
        if is_established(pair) and pair.value is not None:
            turned = larger_first(pair)
            found.setdefault(turned.against, []).append(turned)
    groups = [
        Group(lower, tuple(sorted(above, key=lambda pair: order.index(pair.arm)))) for lower, above in found.items()
    ]
    return sorted(groups, key=lambda group: (-len(group.pairs), order.index(group.lower)))


def larger_first(pair: Pair) -> Pair:
    """The same comparison, told from the arm that has more."""
    if pair.value is None or pair.value >= (1 if pair.kind == "ratio" else 0):
        return pair
    value, high, low = (_turned(pair, end) for end in (pair.value, pair.low, pair.high))
    return msgspec.structs.replace(pair, arm=pair.against, against=pair.arm, value=value, low=low, high=high)


def undecided(pairs: Sequence[Pair], order: Sequence[str]) -> list[str] | None:
    """The arms of `pairs` where these are all pairs of them, so that one list names them all; else None."""
    named = {arm for pair in pairs for arm in (pair.against, pair.arm)}
    arms = [arm for arm in order if arm in named]
    return arms if len({frozenset((p.arm, p.against)) for p in pairs}) == len(arms) * (len(arms) - 1) // 2 else None


def size(pair: Pair, value: float | None) -> str:
    """A value of a pair in words: `+12.5 points`, `1.12 times`, `+0.021`."""
    if value is None:
        return numbers.MISSING
    return amount(pair, value) + _unit(pair)


def amount(pair: Pair, value: float) -> str:
    """The same without its unit."""
    if pair.kind == "ratio":
        return numbers.significant(value)
    return numbers.points(value) if style_of(pair.metric) == "percent" else numbers.signed(value, 3)


def _unit(pair: Pair) -> str:
    if pair.kind == "ratio":
        return " times"
    return " points" if style_of(pair.metric) == "percent" else ""


def _turned(pair: Pair, end: float | None) -> float | None:
    if end is None or (pair.kind == "ratio" and end <= 0):
        return None
    return 1 / end if pair.kind == "ratio" else -end
