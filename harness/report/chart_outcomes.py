"""What became of the requests of each arm: one bar to 100%, its parts told apart by hatching and named with counts."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from harness.metrics.quality import Counts
from harness.report import numbers, rows, svg
from harness.report.frame import Axis
from harness.report.palette import Look
from harness.report.scale import Scale, share

OUTCOMES = ("valid", "invalid", "truncated", "stopped_early", "failed", "unsupported")


def chart(arms: Sequence[Look], counts: Mapping[str, Counts]) -> Markup:
    """A stacked bar an arm."""
    scale = share(rows.LEFT, rows.RIGHT)
    axis = Axis(scale, "share of requests", numbers.percent_tick)

    def draw(look: Look, middle: float) -> Markup:
        return _bar(counts[look.arm], middle - 8, scale)

    return rows.chart("Outcomes by arm", arms, axis, draw, lambda look: _note(counts[look.arm]))


def title(outcome: str) -> str:
    """The outcome in words."""
    return outcome.replace("_", " ")


def _bar(counts: Counts, top: float, across: Scale) -> Markup:
    parts, begin = [], 0
    for outcome in OUTCOMES:
        n: int = getattr(counts, outcome)
        left, right = across.at(begin / counts.n), across.at((begin + n) / counts.n)
        hint = f"{title(outcome)}: {n:,} of {counts.n:,}"
        parts.append(svg.rect((left, top), right - left, 16, f"seg {outcome}", hint))
        begin += n
    return svg.group(parts)


def _note(counts: Counts) -> str:
    return f"{numbers.count(counts.valid)} of {numbers.count(counts.n)} valid"
