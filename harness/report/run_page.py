"""A run folder read once: its numbers, its Parquet file, and what the page shows of it."""

from pathlib import Path

import msgspec

from harness.manifest import Manifest
from harness.metrics.summarise import summarise
from harness.metrics.summary import Summary
from harness.report import examples, html, interest, numbers, tokens
from harness.report.harvest import Harvest
from harness.report.page import Examples, TaskPage, shown_words, task_page
from harness.report.palette import looks
from harness.report.parquet import RecordTable
from harness.report.setup import read_manifest, set_up, started

LISTED = 120
"""Examples that the browser lists at most."""


class Made(msgspec.Struct, frozen=True):
    """The numbers of a run and the page made of them."""

    summary: Summary
    page: TaskPage


def read_run(folder: Path, example_bytes: int) -> Made:
    """Read a run; writes `records.parquet` on the way."""
    manifest = read_manifest(folder)
    with RecordTable(folder / "records.parquet") as table:
        harvest = Harvest(folder / "records.jsonl", table)
        summary = summarise(harvest.lines(), manifest.task, manifest.deployment.name, manifest.seed)
    texts = tokens.read(folder, manifest.deployment.stop_ids)
    title, subtitle = f"{manifest.task} on {manifest.deployment.name}", _subtitle(manifest)
    shown = _examples(folder, summary, harvest, texts, example_bytes)
    return Made(summary, task_page(title, subtitle, summary, harvest.reasons, texts, shown, set_up(folder, manifest)))


def _examples(
    folder: Path, summary: Summary, harvest: Harvest, texts: tokens.TokenTexts, example_bytes: int
) -> Examples:
    chosen = interest.choose(harvest.sightings, LISTED)
    views = examples.views(folder, chosen, harvest.sightings, looks(tuple(summary.arms)), texts)
    rendered = html.render_examples(views, example_bytes)
    kinds = dict.fromkeys(kind for view in views[: len(rendered)] for kind in view.kinds)
    return Examples(rendered, shown_words(len(rendered), chosen.interesting, chosen.examples), tuple(kinds))


def _subtitle(manifest: Manifest) -> str:
    parts = (manifest.deployment.model, numbers.plural(manifest.examples, "example"), f"seed {manifest.seed}")
    return " · ".join(part for part in (*parts, started(manifest)) if part)
