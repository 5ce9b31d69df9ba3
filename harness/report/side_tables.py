"""The smaller tables of a report: paired comparisons, what the model wanted, failures, rescaled confidences."""

from collections import Counter
from collections.abc import Mapping

import msgspec

from harness.metrics.masking import Wish
from harness.metrics.names import NAMES
from harness.metrics.pairs import Pair
from harness.metrics.summary import Summary
from harness.record import Outcome
from harness.report import numbers, visible
from harness.report.palette import Look
from harness.report.reading import confidence_of, style_of
from harness.report.tokens import TokenTexts

WISHES = 10
REASONS = 20
Reasons = Mapping[tuple[str, Outcome, str], int]
"""How often a request of an arm failed (or was not expressible) for a reason."""


class PairRow(msgspec.Struct, frozen=True):
    """A row of the table of pairs."""

    metric: str
    arm: str
    against: str
    value: str
    interval: str
    n: str
    p: str
    p_holm: str
    mdd: str
    test: str


class WishRow(msgspec.Struct, frozen=True):
    """A row of the table of what the model wanted: over all arms, with how often in each."""

    wanted: str
    instead: str
    times: str
    probability: str
    examples: str


class ReasonRow(msgspec.Struct, frozen=True):
    """A row of the table of failures."""

    look: Look
    outcome: str
    reason: str
    count: str


class RecalibrationRow(msgspec.Struct, frozen=True):
    """A row of the table of rescaled confidences: ECE (value and interval) before, by temperature, by Platt scaling."""

    look: Look
    n: str
    ece: tuple[tuple[str, str], ...]
    temperature: str


def wishes(summary: Summary, shown: Mapping[str, Look], texts: TokenTexts) -> tuple[WishRow, ...]:
    """The most frequent forbidden wishes, arms that share one in one row."""
    found: dict[tuple[int, int], dict[str, Wish]] = {}
    for arm in shown:
        for wish in summary.wanted[arm].wishes if arm in summary.wanted else ():
            found.setdefault((wish.token, wish.instead), {})[arm] = wish
    frequent = sorted(found.values(), key=lambda arms: -max(wish.count for wish in arms.values()))
    return tuple(_wish(arms, shown, texts) for arms in frequent[:WISHES])


def _wish(arms: Mapping[str, Wish], shown: Mapping[str, Look], texts: TokenTexts) -> WishRow:
    some = next(iter(arms.values()))
    whole = sum(wish.count for wish in arms.values())
    examples = dict.fromkeys(example for wish in arms.values() for example in wish.examples)
    return WishRow(
        wanted=texts.show(some.token),
        instead=texts.show(some.instead),
        times=" · ".join(f"{shown[arm].letter} {wish.count:,}" for arm, wish in arms.items()),
        probability=numbers.probability(sum(wish.count * wish.probability for wish in arms.values()) / whole),
        examples=visible.readable(", ".join(list(examples)[:3]), 120),
    )


def failures(reasons: Reasons, shown: Mapping[str, Look]) -> tuple[ReasonRow, ...]:
    """The most frequent reasons why requests failed."""
    return tuple(
        ReasonRow(shown[arm], outcome, visible.readable(reason, 300), numbers.count(n))
        for (arm, outcome, reason), n in Counter(reasons).most_common(REASONS)
    )


def recalibrations(summary: Summary, shown: Mapping[str, Look]) -> tuple[RecalibrationRow, ...]:
    """What rescaling would do to the confidence that the report shows."""
    confidence = confidence_of(summary)
    return tuple(
        RecalibrationRow(
            look=shown[arm],
            n=f"{one.n_fit:,}, {one.n:,}",
            ece=tuple(_ece(stage["ece"]) for stage in (one.before, one.after_temperature, one.after_platt)),
            temperature=numbers.significant(one.temperature),
        )
        for arm, found in summary.recalibration.items()
        for name, one in found.items()
        if name == confidence
    )


def _ece(estimate: "numbers.Ended") -> tuple[str, str]:
    return numbers.fixed(estimate.value), numbers.between(numbers.fixed, estimate)


def pair_row(pair: Pair) -> PairRow:
    """A comparison in the words of its metric."""

    def write(value: float | None) -> str:
        if value is None:
            return numbers.MISSING
        if pair.kind == "ratio":
            return f"× {numbers.significant(value)}"
        if style_of(pair.metric) == "percent":
            return f"{numbers.points(value)} pt"
        return numbers.seconds(value) if style_of(pair.metric) == "time" else numbers.signed(value, 3)

    return PairRow(
        metric=NAMES[pair.metric].title,
        arm=pair.arm,
        against=pair.against,
        value=write(pair.value),
        interval=numbers.between(write, pair),
        n=numbers.count(pair.n),
        p=numbers.p_value(pair.p).removeprefix("p = ").removeprefix("p "),
        p_holm=numbers.p_value(pair.p_holm).removeprefix("p = ").removeprefix("p "),
        mdd=write(pair.mdd),
        test=pair.test,
    )
