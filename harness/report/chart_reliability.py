"""A reliability diagram of one arm: how often its answers were right at each level of confidence, and below it how many
answers had that confidence. Drawn small, so that the arms stand side by side."""

from collections.abc import Sequence

from markupsafe import Markup

from harness.metrics.reliability import Bin, Reliability
from harness.report import numbers, svg
from harness.report.frame import Axis, Frame
from harness.report.palette import Look
from harness.report.scale import Scale, share

WIDTH, HEIGHT = 268.0, 294.0
LEFT, RIGHT = 52.0, 258.0
TOP, FLOOR = 10.0, 202.0
BARS_TOP, BARS_FLOOR = 216.0, 256.0


def chart(look: Look, diagram: Reliability) -> Markup:
    """Points with 95% bands over the diagonal, their size by the answers in the bin, and the histogram."""
    across = share(LEFT, RIGHT)
    plot = Frame(Axis(across, "", lambda _: ""), Axis(share(FLOOR, TOP), "share right", _tick))
    filled = [one for one in diagram.width if one.n]
    parts = [
        plot.axes(),
        svg.line(plot.point(0, 0), plot.point(1, 1), "diagonal"),
        *(_band(one, plot) for one in filled),
        *(_point(one, plot, look, max(b.n for b in filled)) for one in filled),
        *_histogram(diagram.width, across, look),
    ]
    return svg.drawing(WIDTH, HEIGHT, f"Reliability diagram of {look.arm}", parts)


def _band(one: Bin, plot: Frame) -> Markup:
    if one.low is None or one.high is None or one.confidence is None:
        return Markup("")
    x, low = plot.point(one.confidence, one.low)
    return svg.error_bar_up(x, low, plot.point(one.confidence, one.high)[1], 3)


def _point(one: Bin, plot: Frame, look: Look, largest: int) -> Markup:
    if one.confidence is None or one.accuracy is None:
        return Markup("")
    size = 2.6 + 3.4 * (one.n / largest) ** 0.5
    hint = (
        f"confidence {one.confidence:.3f}, right {numbers.percent(one.accuracy)} "
        f"({numbers.percent(one.low)} to {numbers.percent(one.high)}), n = {one.n:,}"
    )
    return look.marker(plot.point(one.confidence, one.accuracy), size, hint)


def _histogram(bins: Sequence[Bin], across: Scale, look: Look) -> list[Markup]:
    most = max((one.n for one in bins), default=0) or 1
    up = Scale(0, most, BARS_FLOOR, BARS_TOP)
    parts = [
        svg.rect(
            (across.at(one.left) + 1, up.at(one.n)),
            across.at(one.right) - across.at(one.left) - 2,
            BARS_FLOOR - up.at(one.n),
            f"bar {look.colour}",
            f"{one.left:g} to {one.right:g}: {numbers.plural(one.n, 'answer')}",
        )
        for one in bins
    ]
    ticks = [svg.text((across.at(t), BARS_FLOOR + 15), _tick(t), "tick", "middle") for t in (0, 0.5, 1)]
    base = svg.line((LEFT, BARS_FLOOR), (RIGHT, BARS_FLOOR), "axis")
    most_text = svg.text((LEFT - 6, BARS_TOP + 8), numbers.compact(most), "tick", "end")
    names = [svg.text((LEFT - 6, BARS_FLOOR), "0", "tick", "end"),
             svg.upright((12, (BARS_TOP + BARS_FLOOR) / 2), "answers", "title"),
             svg.text(((LEFT + RIGHT) / 2, BARS_FLOOR + 33), "confidence", "title", "middle")]  # fmt: skip
    return [*parts, base, most_text, *ticks, *names]


def _tick(value: float) -> str:
    return f"{value:g}"
