"""All numbers of a benchmark, made from its rows alone: what `masks.json`'s sibling `summary.json` holds.

Times are processor seconds of single masks. They vary with the schema more than with anything else, so schemas are what
intervals are taken over. Engines that express different schemas walk different texts: `shared` holds their times on the
steps that all of them reached, and only those may be compared.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from harness.mask_bench.config import Limits
from harness.mask_bench.instances import Budget, Case, Instance
from harness.mask_bench.rows import CaseRow, Disputed, EngineRow, Finding, Outcome, PairRow, Row
from harness.metrics.estimate import Estimate, nothing
from harness.metrics.intervals import bounded, bounded_mean, share
from harness.metrics.judged import Floats, Ints
from harness.metrics.latency import quantile
from harness.metrics.ratios import ratio

Verdict = str
"""`ok`, `slow`, `wrong`, or the outcome of a row that is not `ok`."""


SHOWN = 24
"""Characters of a text that a verdict shows."""


class Times(msgspec.Struct, frozen=True):
    """Seconds of single masks, and how many; `max` has no interval, and neither has what is shown by too few."""

    n: int
    mean: Estimate
    p50: Estimate
    p90: Estimate
    p99: Estimate
    max: float | None


class EngineNumbers(msgspec.Struct, frozen=True):
    """One engine. `coverage`: schemas compiled of all; `whole`: schemas on which every text came out right, of all.
    `valid_rejected` and `invalid_accepted` are shares of the texts walked whose validity the data and the oracle agree
    on. `compile_s`: median; compiling that a limit ended counts with that limit. `first_mask_s`: median of the first
    mask after compiling. `memory_mib`: the most that its process ever held."""

    outcomes: dict[Outcome, int]
    coverage: Estimate
    whole: Estimate
    valid_rejected: Estimate
    invalid_accepted: Estimate
    compile_s: Estimate
    compile_p99_s: Estimate
    first_mask_s: Estimate
    memory_mib: float | None
    mask_s: Times
    shared: Times
    reasons: tuple[tuple[str, str, str], ...]


class PairNumbers(msgspec.Struct, frozen=True):
    """Two engines over all schemas: on which share of the steps that both reached their masks were the same, on how
    many one allowed what the other forbade; `findings` of the tokens looked into: (allower, forbidder) -> counts."""

    first: str
    second: str
    steps: int
    same: Estimate
    first_only_steps: int
    second_only_steps: int
    first_only: int
    second_only: int
    first_findings: dict[Finding, int]
    second_findings: dict[Finding, int]


class MaskSummary(msgspec.Struct, frozen=True):
    """A whole benchmark. `texts` counts texts; `disagreeing` those on which the data and the oracle differ (left out of
    both error shares). `verdicts` maps the instances that have a budget to engine -> verdict and why."""

    schemas: int
    wanted: int
    texts: int
    tokens: int
    disagreeing: int
    engines: dict[str, EngineNumbers]
    pairs: tuple[PairNumbers, ...]
    examples: tuple[tuple[str, Disputed], ...]
    verdicts: dict[str, dict[str, tuple[Verdict, str]]]
    limits: Limits


def summarise(rows: Sequence[Row], names: Sequence[str], instances: Sequence[Instance], limits: Limits) -> MaskSummary:
    """The numbers of `rows`, over those of `instances` without a budget where there are any such."""
    budgets = {instance.id: instance.budget for instance in instances if instance.budget is not None}
    plain = [row for row in rows if row.id not in budgets] or list(rows)
    return MaskSummary(
        schemas=len(plain),
        wanted=len(instances),
        texts=sum(len(row.valid) for row in plain),
        tokens=sum(sum(row.tokens) for row in plain),
        disagreeing=sum(_disagreeing(row) for row in plain),
        engines={name: _engine(plain, name, names, limits) for name in names},
        pairs=tuple(_pairs(plain)),
        examples=tuple((row.id, one) for row in rows for one in row.disputed),
        verdicts=_verdicts(rows, instances),
        limits=limits,
    )


def _engine(rows: Sequence[Row], name: str, names: Sequence[str], limits: Limits) -> EngineNumbers:
    ours = [row.engines[name] for row in rows]
    compiled = np.array([took_s for one in ours if (took_s := _compiling(one, limits)) is not None])
    first = np.array([one.cases[0].us[0] / 1e6 for one in ours if one.cases])
    return EngineNumbers(
        outcomes=dict(Counter(one.outcome for one in ours)),
        coverage=share(np.array([float(one.compile_s is not None) for one in ours])),
        whole=share(np.array([float(_all_right(row, name)) for row in rows])),
        valid_rejected=_errors(rows, name, valid=True),
        invalid_accepted=_errors(rows, name, valid=False),
        compile_s=_quantile(compiled, 0.5),
        compile_p99_s=_quantile(compiled, 0.99),
        first_mask_s=_quantile(first, 0.5),
        memory_mib=max((one.peak_mib for one in ours if one.peak_mib is not None), default=None),
        mask_s=times([_flat(row.engines[name].cases) for row in rows]),
        shared=times([_shared(row, name, names) for row in rows]),
        reasons=tuple((row.id, row.engines[name].outcome, row.engines[name].reason) for row in rows
                      if row.engines[name].outcome != "ok"),
    )  # fmt: skip


def _compiling(one: EngineRow, limits: Limits) -> float | None:
    """Seconds; the limit where that ended it, so that an engine does not look fast for not getting through."""
    return limits.cpu_s if one.compile_s is None and one.outcome in ("timeout", "memory") else one.compile_s


def times(by_schema: Sequence[Sequence[float]]) -> Times:
    """Of microseconds, a list a schema."""
    walked = [np.array(us) / 1e6 for us in by_schema if len(us)]
    if not walked:
        return Times(0, nothing(), nothing(), nothing(), nothing(), None)
    flat, schema = np.concatenate(walked), np.repeat(np.arange(len(walked)), [len(one) for one in walked])
    sums, sizes = (np.array([float(f(one)) for one in walked]) for f in (np.sum, np.size))
    p50, p90, p99 = (quantile(flat, level, schema) for level in (0.5, 0.9, 0.99))
    return Times(flat.size, ratio(sums, sizes, flat.size), p50, p90, p99, float(flat.max()))


def _disagreeing(row: Row) -> int:
    """Texts on which the data and the oracle differ."""
    return 0 if row.oracle is None else sum(a != b for a, b in zip(row.valid, row.oracle, strict=True))


def _quantile(values: Floats, level: float) -> Estimate:
    return quantile(values, level, np.arange(values.size))


def _flat(cases: Iterable[CaseRow]) -> list[float]:
    return [us for case in cases for us in case.us]


def _shared(row: Row, name: str, names: Sequence[str]) -> list[float]:
    """The microseconds of the steps that every engine reached."""
    cases = min(len(row.engines[other].cases) for other in names)
    steps = [min(len(row.engines[other].cases[i].us) for other in names) for i in range(cases)]
    return [us for i in range(cases) for us in row.engines[name].cases[i].us[: steps[i]]]


def _errors(rows: Sequence[Row], name: str, valid: bool) -> Estimate:
    """The share of valid texts that were rejected, or of invalid ones that were accepted."""
    wrong, schema = list[float](), list[int]()
    for number, row in enumerate(rows):
        for i, case in enumerate(row.engines[name].cases):
            if row.valid[i] == valid and (row.oracle is None or row.oracle[i] == valid):
                wrong.append(float((case.refused is None) != valid))
                schema.append(number)
    clusters: Ints = np.array(schema, dtype=np.int64)
    return bounded_mean(np.array(wrong), clusters if len(set(schema)) < len(schema) else None)


def _all_right(row: Row, name: str) -> bool:
    one = row.engines[name]
    return one.outcome == "ok" and not _wrong(row, name)


def _wrong(row: Row, name: str) -> list[int]:
    """The texts on which an engine is wrong by the data and, where it spoke, the oracle."""
    return [
        i
        for i, case in enumerate(row.engines[name].cases)
        if (case.refused is None) != row.valid[i] and (row.oracle is None or row.oracle[i] == row.valid[i])
    ]


def _pairs(rows: Sequence[Row]) -> Iterable[PairNumbers]:
    found: dict[tuple[str, str], list[PairRow]] = {}
    for pair in (pair for row in rows for pair in row.pairs):
        found.setdefault((pair.first, pair.second), []).append(pair)
    findings: dict[tuple[str, str], Counter[Finding]] = {}
    for one in (one for row in rows for one in row.disputed):
        findings.setdefault((one.allower, one.forbidder), Counter())[one.finding] += 1
    for (first, second), pairs in found.items():
        sums = {field: sum(getattr(pair, field) for pair in pairs) for field in PairRow.__struct_fields__[2:]}
        yield PairNumbers(
            first, second, sums["steps"], _same(pairs), sums["first_only_steps"], sums["second_only_steps"],
            sums["first_only"], sums["second_only"], dict(findings.get((first, second), {})),
            dict(findings.get((second, first), {})),
        )  # fmt: skip


def _same(pairs: Sequence[PairRow]) -> Estimate:
    """The share of steps on which both masks are the same; it varies as schemas do."""
    walked = [pair for pair in pairs if pair.steps]
    steps = np.array([pair.steps for pair in walked], dtype=np.float64)
    if not walked:
        return nothing()
    same = steps - np.array([pair.differing for pair in walked], dtype=np.float64)
    total, groups = float(steps.sum()), steps.size
    value = float(same.sum()) / total
    variance = float(((same - value * steps) ** 2).sum()) / total**2 * groups / max(groups - 1, 1)
    return bounded(value, variance, int(total), groups)


def _verdicts(rows: Sequence[Row], instances: Sequence[Instance]) -> dict[str, dict[str, tuple[Verdict, str]]]:
    """In the order of the set."""
    found = {row.id: row for row in rows}
    judged = [(one, found[one.id]) for one in instances if one.budget is not None and one.id in found]
    return {one.id: {name: verdict(row, name, one) for name in row.engines} for one, row in judged}


def verdict(row: Row, name: str, instance: Instance) -> tuple[Verdict, str]:
    """`wrong` before `slow`: a fast wrong answer is worse. What ended a walk ends the verdict, with what was wrong in
    the texts before it."""
    one, budget = row.engines[name], instance.budget or Budget()
    by_hand = msgspec.structs.replace(row, oracle=None)  # the texts of the set are judged as they were written
    faults = [_fault(instance.cases[i], one.cases[i], row.tokens[i]) for i in _wrong(by_hand, name)]
    if one.outcome != "ok":
        return one.outcome, "; ".join([one.reason, *faults])
    if faults:
        return "wrong", "; ".join(faults)
    if one.compile_s is not None and one.compile_s > budget.compile_s:
        return "slow", f"compiling took {one.compile_s:.2f} s"
    if (worst := _dearest(one.cases)) is not None and worst[0] > budget.mask_s:
        return "slow", f"{worst[1]} took {worst[0] * 1e3:.1f} ms"
    return "ok", ""


def _fault(case: Case, walked: CaseRow, tokens: int) -> str:
    """Which text was judged wrongly and, where it was refused, how far it came."""
    size = f" ({len(case.text):,} characters)" if len(case.text) > SHOWN else ""
    text = "the empty text" if not case.text else case.text[:SHOWN].replace("\n", "\\n") + ("…" if size else "")
    if walked.refused is None:
        return f"accepts invalid: {text}{size}"
    return f"rejects valid: {text}{size} at token {walked.refused + 1} of {tokens}"


def _dearest(cases: Sequence[CaseRow]) -> tuple[float, str] | None:
    """Seconds of the mask that took longest, and which it was."""
    times = [(us / 1e6, i, step) for i, case in enumerate(cases) for step, us in enumerate(case.us)]
    if not times:
        return None
    seconds, i, step = max(times)
    return seconds, "the first mask" if i == step == 0 else f"mask {step + 1} of text {i + 1}"
