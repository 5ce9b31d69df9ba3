"""A figure of a report: a picture with a title, a caption that says how to read it, and a legend."""

import msgspec
from markupsafe import Markup

from harness.report import svg
from harness.report.palette import Look


class Figure(msgspec.Struct, frozen=True):
    """One picture. `legend` pairs a small picture with what it stands for."""

    title: str
    caption: str
    picture: Markup
    legend: tuple[tuple[Markup, str], ...] = ()


class Block(msgspec.Struct, frozen=True):
    """Figures that stand side by side; `narrow` ones need less room each. `folded` are shown when asked for."""

    name: str
    title: str
    figures: tuple[Figure, ...]
    text: str = ""
    narrow: bool = False
    folded: tuple["Block", ...] = ()


def mark(look: Look) -> Markup:
    """The shape of an arm for a legend."""
    picture = look.marker((7, 7), 4.5)
    return Markup('<svg viewBox="0 0 14 14" width="14" height="14" aria-hidden="true">{}</svg>').format(picture)


def swatch(css: str) -> Markup:
    """The filling of a part of a bar for a legend."""
    picture = svg.rect((0, 0), 16, 12, f"seg {css}")
    return Markup('<svg viewBox="0 0 16 12" width="16" height="12" aria-hidden="true">{}</svg>').format(picture)
