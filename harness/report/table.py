"""The table of arms: metrics down, arms across, each cell a value, its interval, its n, and from which arms it differs.

The same table is written as HTML, as Markdown and on the terminal.
"""

from collections.abc import Sequence

import msgspec

from harness.metrics.estimate import Estimate
from harness.metrics.summary import Summary
from harness.report import goodput, numbers
from harness.report.comparisons import is_established
from harness.report.palette import Look, looks
from harness.report.reading import Reading, confidence_of, reading


class Cell(msgspec.Struct, frozen=True):
    """`differs` holds the letters of the arms from which this one differs with a Holm-adjusted p below 0.05."""

    value: str
    interval: str
    n: str
    differs: tuple[str, ...]
    missing: bool


class Row(msgspec.Struct, frozen=True):
    """One metric; `n` is the count that all its cells share, empty where they differ (each cell then says its own)."""

    reading: Reading
    n: str
    cells: tuple[Cell, ...]


class Group(msgspec.Struct, frozen=True):
    """Rows that belong together."""

    title: str
    rows: tuple[Row, ...]


class Table(msgspec.Struct, frozen=True):
    """The arms in order, the groups of rows, and what a reader must know of them (empty where nothing)."""

    arms: tuple[Look, ...]
    groups: tuple[Group, ...]
    note: str

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows in order."""
        return tuple(row for group in self.groups for row in group.rows)


def headline(summary: Summary) -> Table:
    """The rows that a reader needs first."""
    c = confidence_of(summary)
    groups = {
        "Answers": ("accuracy", "score", "validity", "coverage", "failed", "truncated"),
        "Calibration": (f"{c}_ece", f"{c}_brier", f"{c}_auroc"),
        "Speed": ("ttft_s_p50", "tpot_s_p50", "tokens_per_s", "requests_per_s", *_goodput(summary)),
        "Mask": ("mask_s_per_token", "wait_s_per_token", "mask_hidden", "mass"),
    }
    return _table(summary, {title: _shown(summary, metrics) for title, metrics in groups.items()})


def _goodput(summary: Summary) -> tuple[str, ...]:
    return ("goodput_per_s", "correct_goodput_per_s") if summary.targets.limits_s else ()


def everything(summary: Summary) -> Table:
    """Every metric that at least one arm has."""
    metrics = [m for m in next(iter(summary.arms.values()), {}) if _present(summary, m)]
    return _table(summary, {"All metrics": metrics})


def _shown(summary: Summary, metrics: Sequence[str]) -> list[str]:
    """The metrics of a group without `score` where it says the same as accuracy."""
    same = all(_same(arm.get("score"), arm.get("accuracy")) for arm in summary.arms.values())
    return [metric for metric in metrics if not (metric == "score" and same)]


def _same(one: Estimate | None, other: Estimate | None) -> bool:
    return (one.value if one else None) == (other.value if other else None)


def _present(summary: Summary, metric: str) -> bool:
    return any(arm[metric].value is not None for arm in summary.arms.values())


def _table(summary: Summary, groups: dict[str, list[str]]) -> Table:
    shown = looks(tuple(summary.arms))
    differs = _differences(summary, shown)
    made = (Group(title, tuple(_row(summary, m, differs) for m in metrics)) for title, metrics in groups.items())
    return Table(tuple(shown.values()), tuple(group for group in made if group.rows), goodput.note(summary.targets))


def _row(summary: Summary, metric: str, differs: dict[tuple[str, str], list[str]]) -> Row:
    estimates = {arm: metrics[metric] for arm, metrics in summary.arms.items()}
    how = reading(metric, estimates.values())
    counts = {one.n for one in estimates.values() if one.value is not None}
    shared = f"{counts.pop():,}" if len(counts) == 1 else ""
    cells = (_cell(one, how, shared, differs.get((arm, metric), [])) for arm, one in estimates.items())
    return Row(how, shared, tuple(cells))


def _cell(one: Estimate, how: Reading, shared: str, differs: Sequence[str]) -> Cell:
    n = "" if shared or one.value is None else numbers.count(one.n)
    interval = how.interval(one) or ("" if one.value is None else numbers.NO_INTERVAL)
    return Cell(how.number(one.value), interval, n, tuple(differs), one.value is None)


def _differences(summary: Summary, shown: dict[str, Look]) -> dict[tuple[str, str], list[str]]:
    """For each arm and metric, the letters of the arms from which it is established to differ."""
    found: dict[tuple[str, str], list[str]] = {}
    for pair in summary.pairs:
        if is_established(pair):
            found.setdefault((pair.arm, pair.metric), []).append(shown[pair.against].letter)
            found.setdefault((pair.against, pair.metric), []).append(shown[pair.arm].letter)
    return {key: sorted(letters) for key, letters in found.items()}
