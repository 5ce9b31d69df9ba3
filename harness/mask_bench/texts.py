"""The words of a benchmark's report: its table, who is right in disputes, verdicts; the same for terminal, Markdown and
page."""

from collections import Counter
from collections.abc import Sequence

from harness.mask_bench.config import Limits
from harness.mask_bench.grids import Grid
from harness.mask_bench.instances import Budget
from harness.mask_bench.numbers import EngineNumbers, MaskSummary, PairNumbers, Times
from harness.mask_bench.rows import Finding
from harness.metrics.estimate import Estimate
from harness.report.numbers import MISSING, between, count, percent, seconds

FINDINGS: tuple[tuple[Finding, str], ...] = (
    ("viable", "too strict to forbid it"),
    ("dead", "wrong to allow it"),
    ("ends_invalid", "allowed it and let an invalid text end"),
    ("spacing", "white space only"),
    ("undecided", "not shown"),
)
SHOWN = 40
CELL = 160
"""Characters of a cell at most."""


def grids(summary: MaskSummary) -> tuple[Grid, ...]:
    """All tables, those without rows left out."""
    all_of_them = (engines(summary), agreement(summary), verdicts(summary), examples(summary), reasons(summary))
    return tuple(grid for grid in all_of_them if grid.rows)


def lead(summary: MaskSummary) -> str:
    """One sentence: what was walked."""
    texts = f"{count(summary.schemas)} schemas, {count(summary.texts)} texts, {count(summary.tokens)} tokens"
    unsure = f"; texts on which data and oracle differ, and which count for neither error: {count(summary.disagreeing)}"
    return f"{texts}, token by token, without a model{unsure if summary.disagreeing else ''}."


def engines(summary: MaskSummary) -> Grid:
    """Engines across, numbers down."""
    named = list(summary.engines.values())
    rows = [
        ("coverage", *(_share(one.coverage) for one in named)),
        ("all texts of a schema right", *(_share(one.whole) for one in named)),
        ("valid texts rejected", *(_share(one.valid_rejected) for one in named)),
        ("invalid texts accepted", *(_share(one.invalid_accepted) for one in named)),
        ("compile, p50", *(_compiling(one.compile_s, summary.limits) for one in named)),
        ("compile, p99", *(_compiling(one.compile_p99_s, summary.limits) for one in named)),
        ("first mask, p50", *(_time(one.first_mask_s) for one in named)),
        *_times("a mask", [one.mask_s for one in named]),
        *_times("on shared steps", [one.shared for one in named]),
        ("memory, most", *(_memory(one, summary.limits) for one in named)),
        ("outcomes", *(_outcomes(one) for one in named)),
    ]
    note = (
        "95% intervals in brackets, over schemas. Times are processor seconds. Engines that express different schemas "
        "walk different texts: compare only the times on shared steps, which every engine reached. Compiling that a "
        "limit ended counts with the limit; a mask that one ended has no time."
    )
    return Grid("Engines", ("", *summary.engines), tuple(rows), note)


def agreement(summary: MaskSummary) -> Grid:
    """A row for each ordered pair: what one allows and the other forbids, and who was right where that is known."""
    rows = [row for pair in summary.pairs for row in _both_ways(pair)]
    note = (
        "On the steps that both engines reached. Of a random sample of the disputed tokens it was looked into whether "
        "a valid text can begin so: the last columns count what was found."
    )
    head = ("allows", "forbids", "steps", "same mask", "steps in dispute", "tokens in dispute")
    return Grid("Agreement", (*head, *(words for _, words in FINDINGS)), tuple(rows), note)


def verdicts(summary: MaskSummary) -> Grid:
    """The pathology set."""
    rows = [
        (name, *(_clipped(f"{verdict}{f': {why}' if why else ''}") for verdict, why in by_engine.values()))
        for name, by_engine in summary.verdicts.items()
    ]
    note = (
        "A text that is judged wrongly is wrong; what passes its budget (compiling "
        f"{seconds(Budget().compile_s)}, a mask {seconds(Budget().mask_s)}, processor time) is slow; the rest is what "
        "ended it."
    )
    return Grid("Pathologies", ("", *summary.engines), tuple(rows), note)


def examples(summary: MaskSummary) -> Grid:
    """Disputed tokens that were looked into, some of each pair and finding."""
    taken: Counter[tuple[str, str, str]] = Counter()
    rows = []
    for schema, one in summary.examples:
        key = (one.allower, one.forbidder, one.finding)
        taken[key] += 1
        if taken[key] <= 2:
            words = dict(FINDINGS)[one.finding]
            text = f"…{one.before[-40:]}"
            rows.append((one.allower, one.forbidder, schema, text, repr(one.token), words, one.evidence))
    head = ("allows", "forbids", "schema", "after", "token", "finding", "evidence")
    return Grid("Disputed tokens", head, tuple(sorted(rows)[: 3 * SHOWN]))


def reasons(summary: MaskSummary) -> Grid:
    """What ended walks, other than schemas that are not supported; then those, most frequent reason first."""
    rows = []
    for name, one in summary.engines.items():
        hard = [(name, outcome, reason, schema) for schema, outcome, reason in one.reasons if outcome != "unsupported"]
        rows += hard[:SHOWN]
        soft = Counter(reason.rpartition(": ")[2] for _, outcome, reason in one.reasons if outcome == "unsupported")
        rows += [(name, "unsupported", reason, f"{times} schemas") for reason, times in soft.most_common(SHOWN // 4)]
    return Grid("What was not walked", ("engine", "outcome", "reason", "schema"), tuple(rows))


def _both_ways(pair: PairNumbers) -> list[tuple[str, ...]]:
    both = (
        (pair.first, pair.second, pair.first_only_steps, pair.first_only, pair.first_findings),
        (pair.second, pair.first, pair.second_only_steps, pair.second_only, pair.second_findings),
    )
    return [
        (
            allower, forbidder, count(pair.steps), _share(pair.same), count(steps), count(tokens),
            *(count(found.get(finding, 0)) for finding, _ in FINDINGS),
        )
        for allower, forbidder, steps, tokens, found in both
    ]  # fmt: skip


def _times(name: str, of: Sequence[Times]) -> list[tuple[str, ...]]:
    return [
        (f"{name}, mean", *(_time(one.mean) for one in of)),
        (f"{name}, p50", *(_time(one.p50) for one in of)),
        (f"{name}, p90", *(_time(one.p90) for one in of)),
        (f"{name}, p99", *(_time(one.p99) for one in of)),
        (f"{name}, max", *(seconds(one.max) for one in of)),
        (f"{name}, n", *(count(one.n) for one in of)),
    ]


def _compiling(one: Estimate, limits: Limits) -> str:
    return f"over {seconds(limits.cpu_s)}" if one.value is not None and one.value >= limits.cpu_s else _time(one)


def _memory(one: EngineNumbers, limits: Limits) -> str:
    if one.outcomes.get("memory"):
        return f"over {limits.memory_mib:,.0f} MiB"
    return MISSING if one.memory_mib is None else f"{one.memory_mib:,.0f} MiB"


def _time(one: Estimate) -> str:
    return _with_interval(seconds(one.value), between(seconds, one))


def _share(one: Estimate) -> str:
    return _with_interval(percent(one.value), between(percent, one)) + (f" n={one.n:,}" if one.n else "")


def _with_interval(value: str, interval: str) -> str:
    return value if value == MISSING or not interval else f"{value} ({interval})"


def _clipped(text: str) -> str:
    return text if len(text) <= CELL else text[: CELL - 1] + "…"


def _outcomes(one: EngineNumbers) -> str:
    return ", ".join(f"{number} {outcome}" for outcome, number in sorted(one.outcomes.items(), key=lambda o: -o[1]))
