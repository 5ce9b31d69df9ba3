"""How a time is spread over the requests of each arm: a strip from its 1% to its 99% point on a logarithmic axis."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from harness.metrics.latency import Distribution
from harness.report import numbers, rows, svg
from harness.report.frame import Axis
from harness.report.palette import Look
from harness.report.scale import Scale, logarithmic


def chart(title: str, arms: Sequence[Look], times: Mapping[str, Distribution]) -> Markup:
    """A row an arm: a thin line over 98% of the requests, a thick one over the middle half, marks at the median (the
    arm's shape), the 90% and the 99% point. An arm without times is said to have none."""
    spread = [second for one in times.values() if one.ecdf for second in (one.ecdf[1], one.ecdf[99])]
    unit_s, unit = numbers.time_unit(spread)
    scale = logarithmic([second / unit_s for second in spread], rows.LEFT, rows.RIGHT)
    axis = Axis(scale, f"{title}, {unit} (logarithmic)", lambda tick: f"{tick:g}")

    def draw(look: Look, middle: float) -> Markup:
        one = times.get(look.arm)
        if one is None or not one.ecdf:
            return svg.text((rows.LEFT + 4, middle + 4), "no times", "tick")
        return _strip(one, look, middle, scale, unit_s)

    return rows.chart(f"{title} by arm", arms, axis, draw, lambda look: _note(times.get(look.arm)))


def _strip(one: Distribution, look: Look, middle: float, scale: Scale, unit_s: float) -> Markup:
    first, lower, median, upper, ninety, last = (
        scale.at(max(one.ecdf[i] / unit_s, scale.low)) for i in (1, 25, 50, 75, 90, 99)
    )
    parts = [
        svg.line((first, middle), (last, middle), f"whisker {look.colour}"),
        svg.rect((lower, middle - 5), max(upper - lower, 1), 10, f"box {look.colour}"),
        svg.line((ninety, middle - 7), (ninety, middle + 7), f"whisker {look.colour}"),
        svg.line((last, middle - 4), (last, middle + 4), f"whisker {look.colour}"),
        look.marker((median, middle), 5),
    ]
    return svg.group(parts, hint=f"{look.arm}: {_note(one)}, n = {one.n:,}")


def _note(one: Distribution | None) -> str:
    """The median, and the farthest point that so many requests tell: one that has an interval, else the longest."""
    if one is None or not one.ecdf:
        return ""
    told = [name for name in ("p90", "p99") if one.quantiles[name].low is not None]
    far = f"{told[-1]} {numbers.seconds(one.quantiles[told[-1]].value)}" if told else ""
    median = numbers.seconds(one.quantiles["p50"].value)
    return f"p50 {median} · {far or f'longest {numbers.seconds(one.ecdf[-1])} of {one.n:,}'}"
