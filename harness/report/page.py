"""Everything that a report shows of one task, ready for the template: no number is computed here."""

import re

import msgspec
from markupsafe import Markup

from harness.metrics.summary import Summary
from harness.report import numbers, verdict
from harness.report.figure import Block
from harness.report.figures import blocks
from harness.report.palette import looks
from harness.report.setup import SetUp
from harness.report.side_tables import (
    PairRow,
    ReasonRow,
    Reasons,
    RecalibrationRow,
    WishRow,
    failures,
    pair_row,
    recalibrations,
    wishes,
)
from harness.report.table import Table, everything, headline
from harness.report.tokens import TokenTexts
from harness.report.verdict import Verdict


class Examples(msgspec.Struct, frozen=True):
    """The examples as HTML, and how many are shown of how many."""

    html: tuple[Markup, ...]
    words: str
    kinds: tuple[str, ...]


class TaskPage(msgspec.Struct, frozen=True):
    """One task of a report."""

    anchor: str
    title: str
    subtitle: str
    verdict: Verdict
    headline: Table
    everything: Table
    blocks: tuple[Block, ...]
    wanted: tuple[WishRow, ...]
    reasons: tuple[ReasonRow, ...]
    recalibration: tuple[RecalibrationRow, ...]
    pairs: tuple[PairRow, ...]
    examples: Examples
    setup: SetUp


def task_page(
    title: str,
    subtitle: str,
    summary: Summary,
    reasons: Reasons,
    texts: TokenTexts,
    examples: Examples,
    setup: SetUp,
) -> TaskPage:
    """What the report shows of one run."""
    shown = looks(tuple(summary.arms))
    return TaskPage(
        anchor=re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "task",
        title=title,
        subtitle=subtitle,
        verdict=verdict.verdict(summary),
        headline=headline(summary),
        everything=everything(summary),
        blocks=blocks(summary, tuple(shown.values())),
        wanted=wishes(summary, shown, texts),
        reasons=failures(reasons, shown),
        recalibration=recalibrations(summary, shown),
        pairs=tuple(pair_row(pair) for pair in summary.pairs),
        examples=examples,
        setup=setup,
    )


def shown_words(shown: int, interesting: int, examples: int) -> str:
    """How many examples are listed, of how many."""
    if not examples:
        return "No records yet."
    if not interesting:
        which = f"all {examples:,} examples" if examples > 1 else "the one example"
        return f"On {which} every arm gave the same valid answer."
    what = f"on which arms differ or an answer is not valid (of {examples:,} in all)"
    if shown == interesting:
        return f"All {numbers.plural(shown, 'example')} {what}."
    return f"{shown:,} of the {interesting:,} examples {what}, taken in turn from each sort."
