"""Where to write a label beside a mark so that it covers neither a mark nor another label."""

from collections.abc import Sequence

from harness.report.svg import Point

Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


TOWARDS = ((1, -1), (-1, -1), (1, 1), (-1, 1), (1.4, 0), (-1.4, 0), (0, -1.4), (0, 1.4))
OUT = (8, 15, 24, 36, 50)


def places(marks: Sequence[tuple[Point, float]], half_widths: Sequence[float], half_height: float) -> list[Point]:
    """A place for the middle of each label, near its mark: `marks` are centres and how far they reach to a corner. Each
    gets the first free place around it, the nearest where none is free."""
    taken = [around(centre, min(reach, 6), min(reach, 6)) for centre, reach in marks]
    found: list[Point] = []
    for (centre, reach), half_width in zip(marks, half_widths, strict=True):
        place = _free(centre, reach, half_width, half_height, taken)
        taken.append(around(place, half_width, half_height))
        found.append(place)
    return found


def around(centre: Point, half_width: float, half_height: float) -> Box:
    """The box with this middle."""
    return centre[0] - half_width, centre[1] - half_height, centre[0] + half_width, centre[1] + half_height


def overlap(one: Box, other: Box) -> bool:
    """Whether two boxes cover some of the same ground."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _free(centre: Point, reach: float, half_width: float, half_height: float, taken: Sequence[Box]) -> Point:
    tries = [(centre[0] + (reach + out) * x, centre[1] + (reach + out) * y) for out in OUT for x, y in TOWARDS]
    for place in tries:
        box = around(place, half_width, half_height)
        if not any(overlap(box, other) for other in taken):
            return place
    return tries[0]
