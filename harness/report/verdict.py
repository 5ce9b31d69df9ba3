"""What can be concluded from a run, and what cannot, in plain sentences.

A difference is stated only where its Holm-adjusted p is below 0.05; where none is, the sentence says so and gives the
smallest difference that this many observations would have shown. Point estimates alone are never ranked.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from harness.metrics.estimate import Estimate
from harness.metrics.names import NAMES
from harness.metrics.pairs import Pair
from harness.metrics.quality import Counts
from harness.metrics.summary import Summary
from harness.report import numbers
from harness.report.comparisons import (
    Group,
    amount,
    hangs_on_outside,
    is_established,
    is_testable,
    lower_groups,
    outside,
    size,
    undecided,
)
from harness.report.reading import CONFIDENCES, confidence_of

SUBJECTS = {
    "accuracy": "right more often than",
    "score": "given more credit than",
    "validity": "valid more often than",
    "tokens_per_s": "faster, in tokens/s, than",
    "requests_per_s": "faster, in requests/s, than",
    "tpot_s_p50": "slower, in time per output token, than",
    **{f"{confidence}_brier": f"worse by Brier score ({confidence}) than" for confidence in CONFIDENCES},
}
"""The metrics a verdict speaks of, in order, and how it says that one arm has more; of the confidences only the one
that the report puts first."""
LONGER = 1.25
"""How much longer the longest answers of an arm may be before rates are told with a caution."""
LISTED, SENTENCES = 4, 3
"""Arms written out in one sentence, and sentences about one metric; charts and tables hold all."""


class Verdict(msgspec.Struct, frozen=True):
    """`lead` is the first thing to read; `established` and `open` are what can and cannot be said; `cautions` are what
    else a reader must know before believing either."""

    lead: str
    established: tuple[str, ...]
    open: tuple[str, ...]
    cautions: tuple[str, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """All of it, in order."""
        return (self.lead, *self.established, *self.open, *self.cautions)


def verdict(summary: Summary) -> Verdict:
    """The verdict on a run."""
    others = {f"{confidence}_brier" for confidence in CONFIDENCES if confidence != confidence_of(summary)}
    about = {metric: pairs for metric in SUBJECTS if metric not in others and (pairs := _of(summary, metric))}
    if [p.value for p in about.get("score", ())] == [p.value for p in about.get("accuracy", ())]:
        about.pop("score", None)
    order = tuple(summary.arms)
    established = tuple(
        sentence for metric, pairs in about.items() for sentence in _established(metric, pairs, order, summary.counts)
    )
    cautions = (*_cautions(summary), *_fragile(about, summary.counts), *_unsure(summary), *_lengths(summary))
    return Verdict(_lead(summary, about), established, tuple(_open(about, order)), (*cautions, *summary.notes))


def listing(names: Sequence[str], end: str = "and", most: int = LISTED) -> str:
    """`a`, `a and b`, `a, b and c`; of more than `most` by two or more only how many more."""
    shown = list(names) if len(names) <= most + 1 else [*names[:most], f"{len(names) - most} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {end} {shown[-1]}"


def _of(summary: Summary, metric: str) -> tuple[Pair, ...]:
    return tuple(pair for pair in summary.pairs if pair.metric == metric and pair.value is not None)


def _lead(summary: Summary, about: Mapping[str, Sequence[Pair]]) -> str:
    if not summary.arms:
        return "No request has a record: nothing was measured."
    if len(summary.arms) < 2:
        return "One arm alone: its numbers stand with their intervals, and there is nothing to compare it with."
    order, named = tuple(summary.arms), {"accuracy": "Accuracy", "validity": "Validity", "tokens_per_s": "Throughput"}
    told = [m for m in named if m in about and (m != "validity" or any(map(is_established, about[m])))]
    parts = [f"{named[metric]}: {_lead_part(metric, about[metric], order)}." for metric in told]
    if _lengths(summary) and any(map(is_established, about.get("tokens_per_s", ()))):
        parts.append("Answers are not of one length, which alone can make tokens/s differ.")
    if dead := [arm for arm, counts in summary.counts.items() if counts.failed == counts.n]:
        parts.insert(0, f"Every request of {listing(dead)} failed.")
    return " ".join(parts) or (
        "No two arms answered the same examples that have a right answer, nor ran the same whole blocks: none can be "
        "compared."
    )


def _lead_part(metric: str, pairs: Sequence[Pair], order: Sequence[str]) -> str:
    groups = lower_groups(pairs, order)
    if not any(map(is_testable, pairs)):
        return "no difference could be tested"
    if not groups:
        return "no difference is established"
    first, rest = groups[0], sum(len(group.pairs) for group in groups[1:])
    more = f" (and {rest} more established)" if rest else ""
    verb = "is" if len(first.pairs) == 1 else "are"
    return f"{listing([pair.arm for pair in first.pairs])} {verb} {SUBJECTS[metric]} {first.lower}{more}"


def _established(metric: str, pairs: Sequence[Pair], order: Sequence[str], counts: Mapping[str, Counts]) -> list[str]:
    groups = lower_groups(pairs, order)
    sentences = [_finding(metric, group, counts) for group in groups[:SENTENCES]]
    if rest := sum(len(group.pairs) for group in groups[SENTENCES:]):
        sentences.append(f"{rest} more differences in {NAMES[metric].title} are in the table of paired comparisons.")
    return sentences


def _finding(metric: str, group: Group, counts: Mapping[str, Counts]) -> str:
    """What is established about one arm: which ones have more than it, by how much, and on how many of the examples
    where that is not all."""
    by = [f"{pair.arm} {size(pair, pair.value)} ({_interval(pair)}{_on(pair, counts)})" for pair in group.pairs]
    worst = max(pair.p_holm or 0.0 for pair in group.pairs)
    which = "largest " if len(by) > 1 and worst >= 0.001 else ""
    return f"{_capital(SUBJECTS[metric])} {group.lower}: {listing(by)}; {which}Holm-adjusted {numbers.p_value(worst)}."


def _on(pair: Pair, counts: Mapping[str, Counts]) -> str:
    left_out = outside(pair, counts)
    return f", on {pair.n:,} of {pair.n + left_out:,} examples" if left_out else ""


def _interval(pair: Pair) -> str:
    if pair.low is None or pair.high is None:
        return "no interval"
    return f"{amount(pair, pair.low)} to {amount(pair, pair.high)}"


def _open(about: Mapping[str, Sequence[Pair]], order: Sequence[str]) -> list[str]:
    """What is not established, a sentence for metrics that leave the same arms open, and the smallest difference that
    would have been."""
    alike: dict[str, dict[str, list[Pair]]] = {}
    for metric, pairs in about.items():
        if unknown := [pair for pair in pairs if is_testable(pair) and not is_established(pair)]:
            alike.setdefault(_between(unknown, order), {})[metric] = unknown
    found = [
        f"{_capital(_titles(unknown))}: no difference is established {between}. {_power(unknown)}"
        for between, unknown in alike.items()
    ]
    untested = [metric for metric, pairs in about.items() if not any(map(is_testable, pairs))]
    why = "too few paired blocks or examples, or no spread among them, for any difference to be established"
    return [*found, f"{_capital(_titles(untested))}: {why}."] if untested else found


def _titles(metrics: Iterable[str]) -> str:
    return listing([NAMES[metric].title for metric in metrics], most=len(NAMES))


def _between(pairs: Sequence[Pair], order: Sequence[str]) -> str:
    if (arms := undecided(pairs, order)) is not None:
        return f"between {listing(arms)}"
    return f"between {listing([f'{pair.arm} and {pair.against}' for pair in pairs], 'nor between')}"


def _power(unknown: Mapping[str, Sequence[Pair]]) -> str:
    sizes = [size_ for metric, pairs in unknown.items() if (size_ := _detectable(metric, pairs))]
    if not sizes:
        return "How small a difference would have shown cannot be said."
    shows = f"a true difference of {listing(sizes, most=len(sizes))} shows in 80% of such runs"
    return f"Tested alone, {shows}; smaller ones can be there unseen."


def _detectable(metric: str, pairs: Sequence[Pair]) -> str:
    """The largest of the smallest differences that these comparisons would have shown; empty where none is known."""
    known = [pair for pair in pairs if pair.mdd is not None]
    if not known:
        return ""
    worst = max(known, key=lambda pair: pair.mdd or 0.0)
    unit = "block" if worst.test == "blocks" else "example"
    shown = size(worst, worst.mdd).lstrip("+")
    return f"{shown} in {NAMES[metric].title} ({numbers.plural(worst.n, unit)})"


def _cautions(summary: Summary) -> list[str]:
    counts = summary.counts
    failed = [f"{arm} {one.failed:,} of {one.n:,}" for arm, one in counts.items() if one.failed]
    refused = [f"{arm} {one.unsupported:,} of {one.n:,}" for arm, one in counts.items() if one.unsupported]
    said = [f"Requests that failed, left out of all other numbers: {listing(failed)}."] if failed else []
    if refused:
        why = "Constraints that the engine cannot express, so that nothing was asked"
        said.append(f"{why} (not valid, and left out of accuracy): {listing(refused)}.")
    return said


def _fragile(about: Mapping[str, Sequence[Pair]], counts: Mapping[str, Counts]) -> list[str]:
    """A word where an established difference is on so few of the examples that those left out could undo it."""
    found = []
    for metric in ("accuracy", "score", "validity"):
        hanging = [p for p in about.get(metric, ()) if is_established(p) and hangs_on_outside(p, counts)]
        if hanging:
            named = listing([f"{p.arm} and {p.against} ({outside(p, counts):,} left out)" for p in hanging])
            found.append(
                f"{_capital(NAMES[metric].title)} is compared only on examples that both arms answered; what is "
                f"established there could be undone by the others, between {named}."
            )
    return found


def _unsure(summary: Summary) -> list[str]:
    """A word where calibration is of a part of the answers, which need not be like the rest."""
    first = confidence_of(summary)
    found = {arm: given[first] for arm, given in summary.reliability.items() if first in given}
    named = [f"{arm} {one.without:,} of {one.n + one.without:,}" for arm, one in found.items() if one.without]
    if not named:
        return []
    return [f"Finished answers without a {first} confidence, left out of calibration under it: {listing(named)}."]


def _lengths(summary: Summary) -> list[str]:
    """A word where answers are not of one length: a rate of tokens and a rate of answers then say different things."""
    lengths = {arm: length for arm, metrics in summary.arms.items() if (length := _length(metrics)) is not None}
    if not lengths or max(lengths.values()) <= LONGER * min(lengths.values()):
        return []
    named = listing([f"{arm} {numbers.significant(length, 2)}" for arm, length in lengths.items()])
    return [
        f"Answers are not of one length (tokens an answer: {named}), so tokens/s and requests/s compare other work."
    ]


def _length(metrics: Mapping[str, Estimate]) -> float | None:
    tokens, requests = metrics["tokens_per_s"].value, metrics["requests_per_s"].value
    return tokens / requests if tokens is not None and requests else None


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]
