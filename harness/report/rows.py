"""The layout that charts with a line for each arm share: the name above, the drawing below, values along one axis.

Names stand above their drawing and not beside it, so that long ones fit a phone.
"""

from collections.abc import Callable, Sequence

from markupsafe import Markup

from harness.report import svg
from harness.report.frame import Axis, fits, thinned
from harness.report.palette import Look

WIDTH = 380.0
LEFT, RIGHT = 10.0, 360.0
ROW = 52.0
TOP = 6.0


def chart(
    title: str,
    arms: Sequence[Look],
    axis: Axis,
    draw: Callable[[Look, float], Markup],
    note: Callable[[Look], str] = lambda _: "",
) -> Markup:
    """A picture with one row an arm; `draw` gets the arm and the height of its middle line, `note` stands at the right
    end of the arm's name."""
    bottom = TOP + ROW * len(arms)
    parts = [axis_below(axis, bottom)]
    for number, look in enumerate(arms):
        top = TOP + ROW * number
        parts += [name(look, top, note(look)), draw(look, top + 29)]
    return svg.drawing(WIDTH, bottom + 38, title, parts)


def name(look: Look, top: float, note: str = "") -> Markup:
    """The arm's shape and name, and what stands at the right end of the line."""
    room = RIGHT - LEFT - 24 - len(note) * 6.2
    parts = [look.marker((LEFT + 5, top + 8), 4), svg.text((LEFT + 16, top + 12), fits(look.arm, room, 12), "name")]
    parts += [svg.text((RIGHT, top + 12), note, "note", "end")] if note else []
    return svg.group(parts, hint=look.arm)


def axis_below(axis: Axis, bottom: float) -> Markup:
    """Grid lines down to an axis at `bottom`, with its ticks and title."""
    labels = [axis.label(tick) for tick in axis.scale.ticks]
    parts = []
    for tick, label, keep in zip(axis.scale.ticks, labels, thinned(axis.scale, labels), strict=True):
        x = axis.scale.at(tick)
        parts.append(svg.line((x, TOP), (x, bottom), "grid"))
        parts += [svg.text((x, bottom + 14), label, "tick", "middle")] if keep else []
    base = svg.line((axis.scale.start, bottom), (axis.scale.end, bottom), "axis")
    return svg.group([*parts, base, svg.text(((LEFT + RIGHT) / 2, bottom + 31), axis.title, "title", "middle")], "axes")
