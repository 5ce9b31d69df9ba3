"""Tables of texts, for the terminal and for Markdown."""

import msgspec

from harness.report.markdown import text as marked

NARROW = 46
"""Columns of a cell on the terminal at most."""


class Grid(msgspec.Struct, frozen=True):
    """A table of texts: what it shows, its column heads, its rows; `note` says how to read it."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def markdown(grid: Grid) -> str:
    """The table under its title, with its note."""
    lines = ["| " + " | ".join(map(marked, row)) + " |" for row in (grid.head, *grid.rows)]
    table = "\n".join([f"### {grid.title}\n", lines[0], "|" + ":--|" * len(grid.head), *lines[1:]]) + "\n"
    return "\n".join([table, *([f"{marked(grid.note)}\n"] if grid.note else [])])


def columns(grid: Grid) -> list[str]:
    """The table in columns under its title, long cells cut."""
    rows = (grid.head, *grid.rows)
    cut = [[cell if len(cell) <= NARROW else cell[: NARROW - 1] + "…" for cell in row] for row in rows]
    widths = [max(map(len, column)) + 2 for column in zip(*cut, strict=True)]
    lines = ["".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cut]
    return [grid.title, *lines]
