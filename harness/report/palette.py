"""How an arm looks wherever it is drawn: a letter, a shape, a dash and a colour, so that no reader needs the colour.

The colours (classes `c0`, `c1`, ... of the stylesheet) are told apart by colour-blind readers; the shapes and letters
carry the same meaning in black and white.
"""

from collections.abc import Sequence

import msgspec
from markupsafe import Markup

from harness.report import svg

COLOURS = 7
DASHES = 5
_CROSS = ((-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4), (0.4, 1.2), (-0.4, 1.2),
          (-0.4, 0.4), (-1.2, 0.4), (-1.2, -0.4), (-0.4, -0.4))  # fmt: skip
SHAPES: tuple[tuple[svg.Point, ...], ...] = (
    (),
    ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    ((0, -1.15), (1.1, 0.85), (-1.1, 0.85)),
    ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    ((-1.1, -0.85), (1.1, -0.85), (0, 1.15)),
    _CROSS,
)


class Look(msgspec.Struct, frozen=True):
    """The looks of one arm: its place among the arms of a report fixes all of them."""

    arm: str
    place: int

    @property
    def letter(self) -> str:
        """`A` to `Z`, then `A2` and so on."""
        turn, index = divmod(self.place, 26)
        return chr(ord("A") + index) + (str(turn + 1) if turn else "")

    @property
    def colour(self) -> str:
        """The class that sets the colour."""
        return f"c{self.place % COLOURS}"

    @property
    def dash(self) -> str:
        """The class that sets the dash of a line."""
        return f"d{self.place % DASHES}"

    def marker(self, centre: svg.Point, size: float = 5.0, hint: str = "") -> Markup:
        """The arm's shape around `centre`."""
        shape = SHAPES[self.place % len(SHAPES)]
        css = f"mark {self.colour}"
        if not shape:
            return svg.circle(centre, size, css, hint)
        return svg.polygon([(centre[0] + size * x, centre[1] + size * y) for x, y in shape], css, hint)

    @property
    def key(self) -> Markup:
        """A small picture of line and shape for legends and tables."""
        line = svg.line((1, 7), (27, 7), f"curve {self.colour} {self.dash}")
        picture = line + self.marker((14, 7), 4.5)
        return Markup('<svg class="key" viewBox="0 0 28 14" width="28" height="14" aria-hidden="true">{}</svg>').format(
            picture
        )


def looks(arms: Sequence[str]) -> dict[str, Look]:
    """The looks of `arms`, in their order."""
    return {arm: Look(arm, place) for place, arm in enumerate(arms)}
