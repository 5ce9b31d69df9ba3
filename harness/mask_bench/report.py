"""From a benchmark's folder to its reports: `summary.json`, `masks.md`, `masks.html`, and the table of the terminal.

They are made from the rows alone and can be made again at any time.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.mask_bench import page, texts
from harness.mask_bench.folder import read_manifest, read_rows
from harness.mask_bench.instances import read
from harness.mask_bench.numbers import MaskSummary, summarise
from harness.mask_bench.texts import Grid
from harness.report.files import write_text
from harness.report.markdown import text as marked

TITLE = "Mask engines"
NARROW = 46
"""Columns of a cell on the terminal at most."""


class Paths(msgspec.Struct, frozen=True):
    """Where the page is, the numbers in it, and the table of the terminal."""

    html: Path
    summary: MaskSummary
    table: str


def write(folder: Path) -> Paths:
    """Make the reports of a benchmark in its own folder."""
    manifest = read_manifest(folder)
    config = manifest.config
    summary = summarise(read_rows(folder), config.engines, read(config.sources, config.first))
    versions = ", ".join(
        f"{name} {one.version} (set up in {one.setup_s:.1f} s)" for name, one in manifest.engines.items()
    )
    shown, said = texts.grids(summary), texts.lead(summary)
    write_text(folder / "summary.json", msgspec.json.format(msgspec.json.encode(summary), indent=1).decode())
    write_text(folder / "masks.md", markdown(said, versions, shown))
    write_text(folder / "masks.html", page.render(TITLE, versions, said, summary, shown))
    return Paths(folder / "masks.html", summary, terminal(said, shown))


def markdown(lead: str, subtitle: str, grids: Sequence[Grid]) -> str:
    """The same tables for a comment on a pull request."""
    parts = [f"## {TITLE}\n\n{marked(lead)}\n\n{marked(subtitle)}\n"]
    for grid in grids:
        rule = "|" + ":--|" * len(grid.head)
        lines = ["| " + " | ".join(map(marked, row)) + " |" for row in (grid.head, *grid.rows)]
        parts += ["\n".join([f"### {grid.title}\n", lines[0], rule, *lines[1:]]) + "\n"]
        parts += [f"{marked(grid.note)}\n"] if grid.note else []
    return "\n".join(parts)


def terminal(lead: str, grids: Sequence[Grid]) -> str:
    """The tables that sum up (not the examples and reasons), in columns."""
    parts = [lead]
    for grid in grids:
        if grid.title not in ("Disputed tokens", "What was not walked"):
            parts += ["", grid.title, *_columns((grid.head, *grid.rows))]
    return "\n".join(parts)


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    cut = [[cell if len(cell) <= NARROW else cell[: NARROW - 1] + "…" for cell in row] for row in rows]
    widths = [max(map(len, column)) + 2 for column in zip(*cut, strict=True)]
    return ["".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cut]
