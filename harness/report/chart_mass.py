"""How much of the model's own probability the mask kept, token by token: a small histogram an arm."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from markupsafe import Markup

from harness.metrics.masking import Wanted
from harness.report import rows, svg
from harness.report.frame import Axis
from harness.report.palette import Look
from harness.report.scale import Scale, share

HIGH = 24.0


def chart(arms: Sequence[Look], masks: Mapping[str, Wanted]) -> Markup:
    """The share of an arm's constrained tokens in each bin of kept mass, the tallest bar as high as the row."""
    scale = share(rows.LEFT, rows.RIGHT)
    axis = Axis(scale, "probability that the mask kept, a token", lambda tick: f"{tick:g}")

    def draw(look: Look, middle: float) -> Markup:
        wanted = masks.get(look.arm)
        if wanted is None or not wanted.tokens:
            return svg.text((rows.LEFT + 4, middle + 4), "no mask", "tick")
        return _histogram(wanted, look, middle + 13, scale)

    return rows.chart("Probability kept by the mask, by arm", arms, axis, draw, lambda look: _note(masks.get(look.arm)))


def _histogram(wanted: Wanted, look: Look, floor: float, across: Scale) -> Markup:
    most = max(wanted.kept) or 1
    parts = []
    for (left, right), n in zip(pairwise(wanted.edges), wanted.kept, strict=True):
        high = max(HIGH * n / most, 1.0) if n else 0.0
        x, width = across.at(left), across.at(right) - across.at(left)
        hint = f"{left:g} to {right:g}: {n:,} of {wanted.tokens:,} tokens"
        parts.append(svg.rect((x + 0.5, floor - high), width - 1, high, f"bar {look.colour}", hint))
    return svg.group([*parts, svg.line((rows.LEFT, floor), (rows.RIGHT, floor), "grid")])


def _note(wanted: Wanted | None) -> str:
    if wanted is None or not wanted.tokens:
        return ""
    return f"choice forbidden: {wanted.forbidden:,} of {wanted.tokens:,} tokens"
