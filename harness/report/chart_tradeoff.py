"""Accuracy against throughput, with calibration as a ring around each arm: the smaller the ring, the better its
confidences can be believed."""

from collections.abc import Iterable, Sequence

import msgspec
from markupsafe import Markup

from harness.metrics.estimate import Estimate
from harness.report import numbers, placing, svg
from harness.report.frame import Axis, Frame
from harness.report.palette import Look
from harness.report.scale import Scale, spanning

WIDTH, HEIGHT = 380.0, 330.0
LEFT, RIGHT, TOP, FLOOR = 54.0, 368.0, 44.0, 286.0
BOLD = 11.0
"""Width of a bold letter, in units of the picture."""
MARK = 5.0
WIDEST = 17.0
"""Radius of the largest ring, in units of the picture."""


class Spot(msgspec.Struct, frozen=True):
    """One arm of the picture."""

    look: Look
    accuracy: Estimate
    speed: Estimate
    ece: Estimate

    @property
    def ece_value(self) -> float | None:
        """The ECE, where there is one."""
        return self.ece.value


class Rings(msgspec.Struct, frozen=True):
    """How large a ring an ECE has: none for 0, and the largest one drawn has `WIDEST`."""

    largest: float

    def radius(self, ece: float | None) -> float:
        """The radius, in units of the picture; that of the mark where there is no ECE."""
        return MARK + (WIDEST - MARK) * (ece or 0.0) / self.largest

    def key(self) -> Markup:
        """What the size of a ring says."""
        parts, x = [svg.text((LEFT, 25), "ring: ECE", "tick")], LEFT + 84
        for ece in self._shown():
            radius = self.radius(ece)
            parts += [svg.circle((x, 21), radius, "faint"), svg.text((x + radius + 4, 25), f"{ece:g}", "tick")]
            x += radius + WIDEST + 44
        return svg.group(parts)

    def _shown(self) -> list[float]:
        return [ece for ece in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if ece <= self.largest * 1.001][-2:]


def chart(spots: Sequence[Spot]) -> Markup:
    """The arms that have both an accuracy and a throughput."""
    drawn = [spot for spot in spots if spot.accuracy.value is not None and spot.speed.value is not None]
    plot = _frame(drawn)
    rings = Rings(max(0.05, *(spot.ece_value or 0.0 for spot in drawn), 0.0))
    parts = [plot.axes(), rings.key()]
    parts += [_ring(spot, plot, rings) for spot in drawn]
    parts += [_bars(spot, plot) for spot in drawn]
    parts += [spot.look.marker(_centre(spot, plot), MARK, _hint(spot)) for spot in drawn]
    return svg.drawing(WIDTH, HEIGHT, "Accuracy against throughput", [*parts, *_letters(drawn, plot, rings)])


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


def _ring(spot: Spot, plot: Frame, rings: Rings) -> Markup:
    if spot.ece_value is None:
        return Markup("")
    return svg.circle(_centre(spot, plot), rings.radius(spot.ece_value), f"ring {spot.look.colour}", _hint(spot))


def _bars(spot: Spot, plot: Frame) -> Markup:
    (x, y), parts = _centre(spot, plot), []
    if spot.speed.low is not None and spot.speed.high is not None:
        parts.append(svg.error_bar_across(plot.x.scale.at(spot.speed.low), plot.x.scale.at(spot.speed.high), y))
    if spot.accuracy.low is not None and spot.accuracy.high is not None:
        parts.append(svg.error_bar_up(x, plot.y.scale.at(spot.accuracy.low), plot.y.scale.at(spot.accuracy.high)))
    return svg.group(parts)


def _letters(spots: Sequence[Spot], plot: Frame, rings: Rings) -> list[Markup]:
    marks = [(_centre(spot, plot), 0.71 * rings.radius(spot.ece_value)) for spot in spots]
    half_widths = [1 + len(spot.look.letter) * BOLD / 2 for spot in spots]
    return [
        svg.text((x, y + 4.5), spot.look.letter, "letter", "middle")
        for spot, (x, y) in zip(spots, placing.places(marks, half_widths, 7), strict=True)
    ]


def _hint(spot: Spot) -> str:
    ece = numbers.fixed(spot.ece_value)
    accuracy, speed = numbers.percent(spot.accuracy.value), numbers.significant(spot.speed.value)
    return f"{spot.look.arm}: accuracy {accuracy}, {speed} tokens/s, ECE {ece}"
