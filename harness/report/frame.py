"""The frame of a plot: its axes, ticks, grid and titles, and how much text fits a width."""

from collections.abc import Callable, Sequence

import msgspec
from markupsafe import Markup

from harness.report import svg
from harness.report.scale import Scale

CHARACTER = 0.56
"""Mean width of a character, in parts of the font size (a sans-serif font, rounded up)."""

Labeller = Callable[[float], str]


class Axis(msgspec.Struct, frozen=True):
    """One axis: where values go, what it shows (with its unit), and how its ticks read."""

    scale: Scale
    title: str
    label: Labeller


class Frame(msgspec.Struct, frozen=True):
    """The plot area of a picture: the ends of the scales of `x` (left to right) and `y` (bottom to top)."""

    x: Axis
    y: Axis

    def point(self, x: float, y: float) -> svg.Point:
        """Where a value is drawn."""
        return self.x.scale.at(x), self.y.scale.at(y)

    def axes(self) -> Markup:
        """Grid, ticks and titles."""
        return svg.group([*_columns(self), *_rows(self)], "axes")


def fits(content: str, width: float, size: float = 11) -> str:
    """`content`, cut in the middle with an ellipsis where it is wider than `width`."""
    room = max(int(width / (CHARACTER * size)), 3)
    if len(content) <= room:
        return content
    head = (room - 1) // 2
    return content[:head] + "…" + content[len(content) - (room - 1 - head) :]


def thinned(scale: Scale, labels: Sequence[str], gap: float = 6, size: float = 11) -> list[bool]:
    """Which tick labels may be written so that none overlaps the one before."""
    shown, edge = [], -float("inf")
    for tick, label in zip(scale.ticks, labels, strict=True):
        half = len(label) * CHARACTER * size / 2
        keep = scale.at(tick) - half >= edge + gap
        edge = scale.at(tick) + half if keep else edge
        shown.append(keep)
    return shown


def _columns(frame: Frame) -> list[Markup]:
    axis, bottom, top = frame.x, frame.y.scale.start, frame.y.scale.end
    labels = [axis.label(tick) for tick in axis.scale.ticks]
    parts = []
    for tick, label, keep in zip(axis.scale.ticks, labels, thinned(axis.scale, labels), strict=True):
        x = axis.scale.at(tick)
        parts.append(svg.line((x, bottom), (x, top), "grid"))
        parts += [svg.text((x, bottom + 15), label, "tick", "middle")] if keep and label else []
    middle = (axis.scale.start + axis.scale.end) / 2
    baseline = svg.line((axis.scale.start, bottom), (axis.scale.end, bottom), "axis")
    title = [svg.text((middle, bottom + 32), axis.title, "title", "middle")] if axis.title else []
    return [*parts, baseline, *title]


def _rows(frame: Frame) -> list[Markup]:
    axis, left, right = frame.y, frame.x.scale.start, frame.x.scale.end
    parts = []
    for tick in axis.scale.ticks:
        y = axis.scale.at(tick)
        parts.append(svg.line((left, y), (right, y), "grid"))
        parts.append(svg.text((left - 6, y + 4), axis.label(tick), "tick", "end"))
    middle = (axis.scale.start + axis.scale.end) / 2
    return [*parts, svg.upright((12, middle), axis.title, "title")] if axis.title else parts
