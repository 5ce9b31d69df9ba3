"""Where the time of an output token goes: a stacked bar an arm, and under it the making of masks, hidden or not."""

from collections.abc import Callable, Mapping, Sequence

from markupsafe import Markup

from harness.metrics.speed import Split
from harness.report import numbers, rows, svg
from harness.report.frame import Axis
from harness.report.palette import Look
from harness.report.scale import from_zero

BAR = 14.0
PARTS = (("forward", "forward pass"), ("mask", "waiting for masks"), ("apply", "applying masks"), ("other", "the rest"))
"""Classes (each with its own hatching) and names of the parts, in the order they are drawn."""
MADE = ("made", "making masks, hidden or not")


def chart(arms: Sequence[Look], splits: Mapping[str, Split]) -> Markup:
    """The bars of the arms whose blocks were timed; the others are said to be not measured."""
    longest = max((max(split.total_s, split.made_s or 0.0) for split in splits.values()), default=0.0)
    unit_s, unit = numbers.time_unit([longest])
    scale = from_zero(longest / unit_s, rows.LEFT, rows.RIGHT)
    axis = Axis(scale, f"{unit} an output token", lambda tick: f"{tick:g}")

    def draw(look: Look, middle: float) -> Markup:
        split = splits.get(look.arm)
        if split is None:
            return svg.text((rows.LEFT + 4, middle + 4), "not measured", "tick")
        return _bar(split, middle - BAR / 2 - 3, lambda seconds: scale.at(seconds / unit_s))

    return rows.chart("Time of an output token by arm", arms, axis, draw, lambda look: _note(splits.get(look.arm)))


def _bar(split: Split, top: float, at: Callable[[float], float]) -> Markup:
    lengths_s = (split.forward_s, split.mask_s, split.apply_s, split.other_s)
    parts, begin_s = [], 0.0
    for (css, name), length_s in zip(PARTS, lengths_s, strict=True):
        end_s = begin_s + max(length_s or 0.0, 0.0)
        hint = f"{name}: {numbers.seconds(length_s)}"
        parts.append(svg.rect((at(begin_s), top), at(end_s) - at(begin_s), BAR, f"seg {css}", hint))
        begin_s = end_s
    if split.made_s:
        hint = f"{MADE[1]}: {numbers.seconds(split.made_s)}"
        parts.append(svg.rect((at(0), top + BAR + 2), at(split.made_s) - at(0), 5, f"seg {MADE[0]}", hint))
    return svg.group(parts)


def _note(split: Split | None) -> str:
    return "" if split is None else numbers.seconds(split.total_s)
