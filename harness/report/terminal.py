"""The table on a terminal: arms down, what matters most across, and the verdict under it."""

from harness.metrics.summary import Summary
from harness.report import verdict
from harness.report.palette import Look
from harness.report.table import Table, headline

WIDTH = 100


def terminal_table(summary: Summary) -> str:
    """Metrics down, arms across, each value with its interval; then the verdict."""
    table = headline(summary)
    lines = [f"{summary.task} on {summary.deployment}", ""]
    per_line = max((WIDTH - 24) // _width(table), 1)
    for start in range(0, len(table.arms), per_line):
        lines += [*_lines(table, start, start + per_line), ""]
    lines += [table.note, ""] if table.note else []
    return "\n".join([*lines, *verdict.verdict(summary).sentences])


def _lines(table: Table, start: int, stop: int) -> list[str]:
    arms, width = table.arms[start:stop], _width(table)
    lines = [" " * 24 + "".join(_fit(_name(look), width) for look in arms)]
    for row in table.rows:
        cells = row.cells[start:stop]
        if all(cell.missing for cell in row.cells):
            continue
        title = f"{row.reading.title} {row.reading.arrow}"
        texts = (f"{cell.value} ({cell.interval})" if cell.interval else cell.value for cell in cells)
        lines.append((_fit(title, 24) + "".join(_fit(text, width) for text in texts)).rstrip())
    return [line.rstrip() for line in lines]


def _name(look: Look) -> str:
    return f"{look.letter} {look.arm}"


def _width(table: Table) -> int:
    longest = max((len(f"{c.value} ({c.interval})") for row in table.rows for c in row.cells), default=10)
    return max(longest, 19) + 2


def _fit(text: str, width: int) -> str:
    """`text` in `width` columns, cut with an ellipsis, at least one space at the end."""
    return (text if len(text) < width else text[: width - 2] + "…").ljust(width)
