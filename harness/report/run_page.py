"""A run folder read once: its numbers, its Parquet file, and what the page shows of it."""

from pathlib import Path

import msgspec

from harness.manifest import Manifest
from harness.metrics.summarise import summarise
from harness.metrics.summary import Summary
from harness.metrics.targets import Targets
from harness.report import alike, examples, html, interest, numbers, tokens
from harness.report.goodput import targets_of
from harness.report.harvest import Harvest
from harness.report.page import Examples, TaskPage, shown_words, task_page
from harness.report.palette import looks
from harness.report.parquet import RecordTable
from harness.report.setup import is_greedy, read_manifest, set_up, started
from harness.report.sources import Source, Sources

LISTED = 120
"""Examples that the browser lists at most."""


class Made(msgspec.Struct, frozen=True):
    """The numbers of a run and the page made of them."""

    summary: Summary
    page: TaskPage


def read_run(folder: Path, example_bytes: int, targets: Targets | None = None) -> Made:
    """Read a run; writes `records.parquet` on the way. `targets` of goodput, else those of the run."""
    manifest, sources = read_manifest(folder), Sources([Source(folder)])
    with RecordTable(folder / "records.parquet") as table:
        harvest = Harvest(sources, table.add)
        summary = summarise(
            harvest.lines(),
            manifest.task,
            manifest.deployment.name,
            manifest.seed,
            order=manifest.arms,
            lines=sources.whole_lines(),
            greedy=is_greedy(manifest),
            targets=targets_of(manifest) if targets is None else targets,
        )
    missing = alike.unfinished(Source(folder), summary.counts)
    summary = msgspec.structs.replace(summary, notes=(*missing, *summary.notes))
    texts = tokens.read(folder, manifest.deployment.stop_ids)
    title, subtitle = f"{manifest.task} on {manifest.deployment.name}", _subtitle(manifest)
    shown = show_examples(sources, summary, harvest, texts, example_bytes)
    return Made(summary, task_page(title, subtitle, summary, harvest.reasons, texts, shown, set_up(folder, manifest)))


def show_examples(
    sources: Sources, summary: Summary, harvest: Harvest, texts: tokens.TokenTexts, example_bytes: int
) -> Examples:
    """The examples of interest as HTML, as many as fit, and how many of how many that is."""
    chosen = interest.choose(harvest.sightings, LISTED)
    views = examples.views(sources, chosen, harvest.sightings, looks(tuple(summary.arms)), texts)
    rendered = html.render_examples(views, example_bytes)
    kinds = dict.fromkeys(kind for view in views[: len(rendered)] for kind in view.kinds)
    return Examples(rendered, shown_words(len(rendered), chosen.interesting, chosen.examples), tuple(kinds))


def _subtitle(manifest: Manifest) -> str:
    parts = (manifest.deployment.model, numbers.plural(manifest.examples, "example"), f"seed {manifest.seed}")
    return " · ".join(part for part in (*parts, started(manifest)) if part)
