"""SVG elements as escaped text: the few that the charts need, with short coordinates so that a report stays small.

Colours are classes, never values, so that one stylesheet serves light and dark pages and print.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from markupsafe import Markup, escape

Anchor = Literal["start", "middle", "end"]
Point = tuple[float, float]


def drawing(width: float, height: float, title: str, parts: Iterable[Markup]) -> Markup:
    """A picture of `width` by `height` units that scales with its place; `title` is what a screen reader says."""
    head = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}" class="chart">')
    return head.format(_number(width), _number(height), title) + Markup("").join(parts) + Markup("</svg>")


def group(parts: Iterable[Markup], css: str = "", hint: str = "") -> Markup:
    """Parts that belong together; `hint` shows when a pointer rests on them."""
    tip = Markup("<title>{}</title>").format(hint) if hint else Markup("")
    return Markup('<g class="{}">').format(css) + tip + Markup("").join(parts) + Markup("</g>")


def line(start: Point, end: Point, css: str) -> Markup:
    """A straight line."""
    return _shape("line", css, x1=start[0], y1=start[1], x2=end[0], y2=end[1])


def rect(corner: Point, width: float, height: float, css: str, hint: str = "") -> Markup:
    """A rectangle from its upper left corner; nothing where it has no area."""
    if width <= 0 or height <= 0:
        return Markup("")
    return _shape("rect", css, hint, x=corner[0], y=corner[1], width=width, height=height)


def circle(centre: Point, radius: float, css: str, hint: str = "") -> Markup:
    """A disc."""
    return _shape("circle", css, hint, cx=centre[0], cy=centre[1], r=radius)


def polyline(points: Sequence[Point], css: str) -> Markup:
    """An open line through `points`."""
    return Markup('<polyline class="{}" points="{}"/>').format(css, _points(points))


def polygon(points: Sequence[Point], css: str, hint: str = "") -> Markup:
    """A closed, filled shape."""
    tip = Markup("<title>{}</title>").format(hint) if hint else Markup("")
    return Markup('<polygon class="{}" points="{}">{}</polygon>').format(css, _points(points), tip)


def text(place: Point, content: str, css: str = "", anchor: Anchor = "start") -> Markup:
    """One line of text; `place` is the end of its baseline that `anchor` names."""
    attributes = Markup('x="{}" y="{}" class="{}"').format(_number(place[0]), _number(place[1]), css)
    where = Markup("") if anchor == "start" else Markup(' text-anchor="{}"').format(anchor)
    return Markup("<text {}{}>{}</text>").format(attributes, where, content)


def upright(place: Point, content: str, css: str = "") -> Markup:
    """A line of text turned to read upwards, its middle at `place`."""
    x, y = _number(place[0]), _number(place[1])
    head = Markup('<text x="{}" y="{}" class="{}" text-anchor="middle" transform="rotate(-90 {} {})">')
    return head.format(x, y, css, x, y) + escape(content) + Markup("</text>")


def error_bar_up(x: float, low: float, high: float, half: float = 4) -> Markup:
    """An upright interval with ends."""
    ends = [line((x - half, y), (x + half, y), "error") for y in (low, high)]
    return group([line((x, low), (x, high), "error"), *ends])


def error_bar_across(low: float, high: float, y: float, half: float = 4) -> Markup:
    """A level interval with ends."""
    ends = [line((x, y - half), (x, y + half), "error") for x in (low, high)]
    return group([line((low, y), (high, y), "error"), *ends])


def _shape(name: str, css: str, hint: str = "", **numbers: float) -> Markup:
    attributes = " ".join(f'{key}="{_number(value)}"' for key, value in numbers.items())
    head = Markup('<{} class="{}" ').format(name, css) + Markup(attributes)
    if not hint:
        return head + Markup("/>")
    return head + Markup("><title>{}</title></{}>").format(hint, name)


def _points(points: Sequence[Point]) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in points)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
