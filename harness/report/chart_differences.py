"""Paired differences (or ratios) with their intervals, against a line where there is none."""

from collections.abc import Sequence

import msgspec
from markupsafe import Markup

from harness.report import svg
from harness.report.frame import Axis, fits
from harness.report.rows import LEFT, RIGHT, TOP, WIDTH, axis_below
from harness.report.scale import Scale, logarithmic, spanning

ROW = 40.0


class Difference(msgspec.Struct, frozen=True):
    """One comparison: what is compared, its size and interval in the unit of the axis, and what the test says."""

    name: str
    value: float
    low: float
    high: float
    note: str
    established: bool


def chart(title: str, differences: Sequence[Difference], none: float, unit: str, ratio: bool) -> Markup:
    """A row for each comparison: a full mark where a difference is established, a hollow one where it is not. `none`
    is the value of no difference; ratios lie on a logarithmic axis."""
    ends = [none, *(end for one in differences for end in (one.low, one.value, one.high))]
    left, right = LEFT + 8, RIGHT - 8
    scale = logarithmic(ends, left, right) if ratio else spanning(min(ends), max(ends), left, right)
    bottom, zero = TOP + ROW * len(differences), scale.at(none)
    parts = [axis_below(Axis(scale, unit, lambda tick: f"{tick:g}"), bottom)]
    parts.append(svg.line((zero, TOP), (zero, bottom), "axis"))
    parts += [_row(one, scale, TOP + ROW * place) for place, one in enumerate(differences)]
    return svg.drawing(WIDTH, bottom + 38, title, parts)


def _row(one: Difference, scale: Scale, top: float) -> Markup:
    y, room = top + 26, RIGHT - LEFT - len(one.note) * 5.8
    value, low, high = (scale.at(v) for v in (one.value, one.low, one.high))
    parts = [
        svg.text((LEFT, top + 12), fits(one.name, room, 12), "name"),
        svg.text((RIGHT, top + 12), one.note, "note", "end"),
        svg.error_bar_across(low, high, y),
        svg.circle((value, y), 4.5, "solid" if one.established else "hollow"),
    ]
    return svg.group(parts, hint=f"{one.name}: {one.note}")
