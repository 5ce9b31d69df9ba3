"""From a run folder to its reports: `summary.json`, `records.parquet`, `report.md`, `report.html`.

They are made from the records alone and can be made again at any time.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.metrics.summary import Summary
from harness.metrics.targets import Targets
from harness.report import html, markdown, numbers
from harness.report.files import make_folder, write_json, write_text
from harness.report.html import Page
from harness.report.page import TaskPage
from harness.report.run_page import Made, read_run
from harness.report.terminal import terminal_table

__all__ = ["ReportPaths", "terminal_table", "write_combined", "write_reports"]

EXAMPLE_BYTES = 3_000_000
"""What the examples may take of one page, over all its tasks."""


class ReportPaths(msgspec.Struct, frozen=True):
    """Where the reports are, and the numbers in them."""

    summary: Summary
    json: Path
    parquet: Path
    markdown: Path
    html: Path


def write_reports(run_folder: Path, targets: Targets | None = None) -> ReportPaths:
    """Make the reports of a run in its own folder, under `targets` of goodput, else under those of the run. Raises
    `HarnessError` where they cannot be written."""
    return _write_run(run_folder, read_run(run_folder, EXAMPLE_BYTES, targets))


def write_combined(run_folders: Sequence[Path], out: Path) -> Path:
    """One page over several runs (tasks, or the points of a sweep), a section each: `report.html` and `report.md` in
    `out`; gives the page. The reports of each run are made in its own folder as well."""
    made = [read_run(folder, EXAMPLE_BYTES // len(run_folders)) for folder in run_folders]
    for folder, one in zip(run_folders, made, strict=True):
        _write_run(folder, one)
    make_folder(out)
    pages = _apart([one.page for one in made], run_folders)
    title = f"{numbers.plural(len(pages), 'run')}: {', '.join(dict.fromkeys(one.summary.task for one in made))}"
    write_text(out / "report.md", markdown.render(pages, title))
    write_text(out / "report.html", html.render(Page(title, "", pages)))
    return out / "report.html"


def _write_run(folder: Path, made: Made) -> ReportPaths:
    names = ("summary.json", "records.parquet", "report.md", "report.html")
    paths = ReportPaths(made.summary, *(folder / name for name in names))
    write_json(paths.json, made.summary)
    write_text(paths.markdown, markdown.render([made.page], made.page.title))
    write_text(paths.html, html.render(Page(made.page.title, made.page.subtitle, (made.page,))))
    return paths


def _apart(pages: Sequence[TaskPage], folders: Sequence[Path]) -> tuple[TaskPage, ...]:
    """The pages with titles and anchors that differ: runs of one task are told apart by their folders."""
    titles = [page.title for page in pages]
    named = [
        title if titles.count(title) == 1 else f"{title} ({folder.name})"
        for title, folder in zip(titles, folders, strict=True)
    ]
    return tuple(
        msgspec.structs.replace(page, title=title, anchor=f"run-{number}")
        for number, (page, title) in enumerate(zip(pages, named, strict=True), start=1)
    )
