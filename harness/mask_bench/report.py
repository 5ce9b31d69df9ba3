"""From a benchmark's folder to its reports: `summary.json`, `masks.md`, `masks.html`, and the table of the terminal.

They are made from the rows alone and can be made again at any time.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.errors import DataError
from harness.mask_bench import grids, page, texts
from harness.mask_bench.folder import read_manifest, read_rows
from harness.mask_bench.grids import Grid
from harness.mask_bench.instances import digest, read
from harness.mask_bench.numbers import MaskSummary, summarise
from harness.report.files import write_json, write_text
from harness.report.markdown import text as marked

TITLE = "Mask engines"


class Paths(msgspec.Struct, frozen=True):
    """Where the page is, the numbers in it, and the table of the terminal."""

    html: Path
    summary: MaskSummary
    table: str


def write(folder: Path) -> Paths:
    """Make the reports of a benchmark in its own folder. Raises `DataError` where the data have changed since."""
    manifest = read_manifest(folder)
    config = manifest.config
    instances = read(config.sources, config.first)
    if (now := digest(instances)) != manifest.data_digest:
        found = (
            f"data: {', '.join(config.sources)} is not what {folder} walked (digest {now}, then {manifest.data_digest})"
        )
        raise DataError(found, "the same texts, which the rows are about", "bring them back, or run the benchmark anew")
    summary = summarise(read_rows(folder), config.engines, instances, config.limits)
    versions = ", ".join(
        f"{name} {one.version} (set up in {one.setup_s:.1f} s)" for name, one in manifest.engines.items()
    )
    shown, said = texts.grids(summary), texts.lead(summary)
    write_json(folder / "summary.json", summary)
    write_text(folder / "masks.md", markdown(said, versions, shown))
    write_text(folder / "masks.html", page.render(TITLE, versions, said, summary, shown))
    return Paths(folder / "masks.html", summary, terminal(said, shown))


def markdown(lead: str, subtitle: str, shown: Sequence[Grid]) -> str:
    """The same tables for a comment on a pull request."""
    return "\n".join([f"## {TITLE}\n\n{marked(lead)}\n\n{marked(subtitle)}\n", *map(grids.markdown, shown)])


def terminal(lead: str, shown: Sequence[Grid]) -> str:
    """The tables that sum up (not the examples and reasons), in columns."""
    parts = [lead]
    for grid in shown:
        if grid.title not in ("Disputed tokens", "What was not walked"):
            parts += ["", *grids.columns(grid)]
    return "\n".join(parts)
