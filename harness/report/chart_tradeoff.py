"""Accuracy against throughput, with calibration as a ring around each arm: the smaller the ring, the better its
confidences can be believed."""

from collections.abc import Iterable, Sequence

import msgspec
from markupsafe import Markup

from harness.metrics.estimate import Estimate
from harness.report import numbers, svg
from harness.report.frame import CHARACTER, Axis, Frame
from harness.report.palette import Look
from harness.report.scale import Scale, spanning

WIDTH, HEIGHT = 380.0, 330.0
LEFT, RIGHT, TOP, FLOOR = 54.0, 368.0, 44.0, 286.0
MARK = 5.0
RING_AT_1 = 90.0
"""Radius, in units of the picture, that an ECE of 1 adds to the mark."""
Box = tuple[float, float, float, float]


class Spot(msgspec.Struct, frozen=True):
    """One arm of the picture."""

    look: Look
    accuracy: Estimate
    speed: Estimate
    ece: Estimate | None


def chart(spots: Sequence[Spot]) -> Markup:
    """The arms that have both an accuracy and a throughput."""
    drawn = [spot for spot in spots if spot.accuracy.value is not None and spot.speed.value is not None]
    plot = _frame(drawn)
    parts = [plot.axes(), _key(), *(_ring(spot, plot) for spot in drawn), *(_bars(spot, plot) for spot in drawn)]
    parts += [spot.look.marker(_centre(spot, plot), MARK, _hint(spot)) for spot in drawn]
    return svg.drawing(WIDTH, HEIGHT, "Accuracy against throughput", [*parts, *_letters(drawn, plot)])


def ring(ece: float) -> float:
    """The radius of the ring that stands for `ece`."""
    return MARK + 2 + RING_AT_1 * ece


def _frame(spots: Sequence[Spot]) -> Frame:
    xs, ys = list(_ends(spot.speed for spot in spots)), list(_ends(spot.accuracy for spot in spots))
    x = spanning(min(xs, default=0.0), max(xs, default=1.0), LEFT, RIGHT)
    y = spanning(min(ys, default=0.0), max(ys, default=1.0), FLOOR, TOP)
    return Frame(
        Axis(_roomy(x), "output tokens a second", lambda tick: f"{tick:,g}"), Axis(_roomy(y), "accuracy", _percent)
    )


def _percent(tick: float) -> str:
    return numbers.percent_tick(round(tick, 6))


def _ends(estimates: Iterable[Estimate]) -> Iterable[float]:
    for one in estimates:
        yield from (end for end in (one.value, one.low, one.high) if end is not None)


def _roomy(scale: Scale) -> Scale:
    """The scale with a margin inside its ends, so that no mark or ring is cut."""
    pad = 16 if scale.end > scale.start else -16
    return Scale(scale.low, scale.high, scale.start + pad, scale.end - pad, scale.log, scale.ticks)


def _centre(spot: Spot, plot: Frame) -> svg.Point:
    return plot.point(spot.speed.value or 0.0, spot.accuracy.value or 0.0)


def _ring(spot: Spot, plot: Frame) -> Markup:
    if spot.ece is None or spot.ece.value is None:
        return Markup("")
    return svg.circle(_centre(spot, plot), ring(spot.ece.value), f"ring {spot.look.colour}", _hint(spot))


def _bars(spot: Spot, plot: Frame) -> Markup:
    (x, y), parts = _centre(spot, plot), []
    if spot.speed.low is not None and spot.speed.high is not None:
        left, right = plot.x.scale.at(spot.speed.low), plot.x.scale.at(spot.speed.high)
        parts += [
            svg.line((left, y), (right, y), "error"),
            *(svg.line((e, y - 4), (e, y + 4), "error") for e in (left, right)),
        ]
    if spot.accuracy.low is not None and spot.accuracy.high is not None:
        low, high = plot.y.scale.at(spot.accuracy.low), plot.y.scale.at(spot.accuracy.high)
        parts += [
            svg.line((x, low), (x, high), "error"),
            *(svg.line((x - 4, e), (x + 4, e), "error") for e in (low, high)),
        ]
    return svg.group(parts)


def _letters(spots: Sequence[Spot], plot: Frame) -> list[Markup]:
    """The arms' letters, each at the first place beside its mark where it covers neither a mark nor a letter."""
    taken: list[Box] = [_around(_centre(spot, plot), MARK + 1, MARK + 1) for spot in spots]
    parts = []
    for spot in spots:
        half = len(spot.look.letter) * CHARACTER * 13 / 2
        place = _free(_centre(spot, plot), _reach(spot), half, taken)
        taken.append(_around(place, half, 7))
        parts.append(svg.text((place[0], place[1] + 4.5), spot.look.letter, "letter", "middle"))
    return parts


def _reach(spot: Spot) -> float:
    """How far the mark and its ring go, towards a corner."""
    return 0.71 * ring(spot.ece.value) if spot.ece is not None and spot.ece.value is not None else MARK


def _free(centre: svg.Point, reach: float, half: float, taken: Sequence[Box]) -> svg.Point:
    x, y = centre
    far = [
        (d * sx, d * sy)
        for d in (reach + 8, reach + 15, reach + 24, reach + 36)
        for sx, sy in ((1, -1), (-1, -1), (1, 1), (-1, 1))
    ]
    places = [(x + dx, y + dy) for dx, dy in far]
    return next((p for p in places if not any(_overlap(_around(p, half, 7), box) for box in taken)), places[0])


def _around(centre: svg.Point, half_width: float, half_height: float) -> Box:
    return centre[0] - half_width, centre[1] - half_height, centre[0] + half_width, centre[1] + half_height


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _key() -> Markup:
    """What the size of a ring says."""
    parts, x = [svg.text((LEFT, 24), "ring: ECE", "tick")], LEFT + 78
    for ece in (0.05, 0.1, 0.2):
        parts += [svg.circle((x, 20), ring(ece), "faint"), svg.text((x + ring(ece) + 4, 24), f"{ece:g}", "tick")]
        x += 2 * ring(0.2) + 26
    return svg.group(parts)


def _hint(spot: Spot) -> str:
    ece = numbers.fixed(spot.ece.value) if spot.ece is not None else numbers.MISSING
    accuracy, speed = numbers.percent(spot.accuracy.value), numbers.significant(spot.speed.value)
    return f"{spot.look.arm}: accuracy {accuracy}, {speed} tokens/s, ECE {ece}"
