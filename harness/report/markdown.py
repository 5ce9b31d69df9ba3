"""`report.md`: the verdict and the table for a comment on a pull request, below 60 kB whatever the run is."""

from collections.abc import Sequence

from harness.report.page import TaskPage
from harness.report.table import Cell, Table

LIMIT = 60_000
"""Bytes; GitHub takes 65,536 characters."""
ESCAPED = str.maketrans({c: "\\" + c for c in "\\`*_{}[]<>|#~$"} | {"\n": " ", "\r": " ", "@": "@\u200b"})
"""Text in tables and sentences: no mark-up, no line breaks, no mention of anybody."""


def render(tasks: Sequence[TaskPage], title: str) -> str:
    """The comment. Rows are dropped from the end, and it says so, where it would be too long."""
    parts = [f"## {text(title)}\n"]
    for task in tasks:
        parts += [f"### {text(task.title)}\n"] if len(tasks) > 1 else []
        parts += [_verdict(task), _table(task.headline), _legend(task.headline)]
    return _cut("\n".join(parts))


def text(content: str) -> str:
    """`content` so that Markdown shows it as it is."""
    return content.translate(ESCAPED)


def _verdict(task: TaskPage) -> str:
    lines = [f"**{text(task.verdict.lead)}**", ""]
    for title, found in (
        ("", task.verdict.established),
        ("", task.verdict.open),
        ("Read with care: ", task.verdict.cautions),
    ):
        lines += [f"- {title}{text(sentence)}" for sentence in found]
    return "\n".join(lines) + "\n"


def _table(table: Table) -> str:
    head = "| | " + " | ".join(f"{look.letter}: {text(look.arm)}" for look in table.arms) + " |"
    rule = "|:--|" + ":--|" * len(table.arms)
    rows = [
        f"| {text(row.reading.title)} {row.reading.arrow}{f' (n = {row.n})' if row.n else ''} | "
        + " | ".join(map(_cell, row.cells))
        + " |"
        for row in table.rows
    ]
    return "\n".join([head, rule, *rows]) + "\n"


def _cell(cell: Cell) -> str:
    parts = [f"**{cell.value}**" if not cell.missing else cell.value]
    parts += [f"({cell.interval})"] if cell.interval else []
    parts += [f"n = {cell.n}"] if cell.n else []
    parts += [f"≠ {' '.join(cell.differs)}"] if cell.differs else []
    return " ".join(parts)


def _legend(table: Table) -> str:
    note = f" {text(table.note)}" if table.note else ""
    marks = " ≠ names the arms from which it differs, Holm-adjusted p < 0.05." if len(table.arms) > 1 else ""
    return f"<sub>95% intervals in brackets.{marks} ↑ more is better, ↓ less is better, – not measured.{note}</sub>\n"


def _cut(whole: str) -> str:
    if len(whole.encode()) <= LIMIT:
        return whole
    end = "\n\nCut here: the whole report is in report.html.\n"
    kept = whole.encode()[: LIMIT - len(end.encode())].decode(errors="ignore")
    return kept[: kept.rfind("\n")] + end
