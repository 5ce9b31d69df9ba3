"""The benchmark's page: one HTML file in the look of the reports, which asks nothing of any other machine."""

from collections.abc import Sequence

from markupsafe import Markup

from harness.mask_bench.grids import Grid
from harness.mask_bench.numbers import MaskSummary, Times
from harness.report import numbers, rows, svg
from harness.report.frame import Axis
from harness.report.html import TEMPLATES
from harness.report.palette import Look, looks
from harness.report.scale import Scale, logarithmic
from harness.report.visible import drawn

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
HEAD = Markup(
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta http-equiv="Content-Security-Policy" content="{}"><link rel="icon" href="data:,">'
    "<title>{}</title><style>{}</style></head><body>"
)


def render(title: str, subtitle: str, lead: str, summary: MaskSummary, grids: Sequence[Grid]) -> str:
    """The whole file; everything that came from data is escaped."""
    style = Markup((TEMPLATES / "style.css").read_text(encoding="utf-8"))
    top = Markup('<header class="top"><h1>{}</h1><p class="muted">{}</p></header><main>').format(title, subtitle)
    said = Markup('<div class="verdict"><p class="lead">{}</p></div>').format(lead)
    parts = [HEAD.format(POLICY, title, style), top, said, _figures(summary), *map(_table, grids)]
    end = Markup("</main><footer>It opens offline. Numbers are in <code>summary.json</code>, rows in "
                 "<code>records.jsonl</code>.</footer></body></html>\n")  # fmt: skip
    return str(Markup("\n").join([*parts, end]))


def _table(grid: Grid) -> Markup:
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(drawn(cell)) for cell in grid.head)
    body = Markup("").join(Markup("<tr>{}</tr>\n").format(_cells(row)) for row in grid.rows)
    note = Markup('<p class="small muted">{}</p>').format(grid.note) if grid.note else Markup("")
    shape = Markup(
        '<div class="scroll" tabindex="0"><table><thead><tr>{}</tr></thead><tbody>\n{}</tbody></table></div>'
    )
    return Markup("<h2>{}</h2>").format(grid.title) + note + shape.format(head, body)


def _cells(row: Sequence[str]) -> Markup:
    return Markup("").join(Markup("<td><bdi>{}</bdi></td>").format(drawn(cell)) for cell in row)


def _figures(summary: MaskSummary) -> Markup:
    shown = list(looks(tuple(summary.engines)).values())
    pictures = [
        ("Time of a mask", "All steps that the engine reached.", {n: o.mask_s for n, o in summary.engines.items()}),
        ("On shared steps", "Steps that all engines reached.", {n: o.shared for n, o in summary.engines.items()}),
    ]
    frames = Markup("").join(
        Markup("<figure><h3>{}</h3><figcaption>{} Line from p50 to the longest, ticks at p90 and p99.</figcaption>{}"
               "</figure>").format(title, caption, chart(title, shown, times))
        for title, caption, times in pictures
        if any(one.n for one in times.values())
    )  # fmt: skip
    return Markup('<div class="cards">{}</div>').format(frames)


def chart(title: str, shown: Sequence[Look], times: dict[str, Times]) -> Markup:
    """A row an engine on a logarithmic axis: its median (the engine's shape), p90, p99 and longest mask."""
    ends = [s for one in times.values() for s in (one.p50.value, one.max) if s]
    unit_s, unit = 1e-6, "µs"
    scale = logarithmic([s / unit_s for s in ends], rows.LEFT, rows.RIGHT)
    axis = Axis(scale, f"{title}, {unit} (logarithmic)", lambda tick: f"{tick:,g}")

    def draw(look: Look, middle: float) -> Markup:
        return _strip(times[look.arm], look, middle, scale, unit_s)

    return rows.chart(title, shown, axis, draw, lambda look: _note(times[look.arm]))


def _strip(one: Times, look: Look, middle: float, scale: Scale, unit_s: float) -> Markup:
    values = (one.p50.value, one.p90.value, one.p99.value, one.max)
    if None in values:
        return svg.text((rows.LEFT + 4, middle + 4), "no masks", "tick")
    p50, p90, p99, most = (scale.at(max((value or 0.0) / unit_s, scale.low)) for value in values)
    parts = [
        svg.line((p50, middle), (most, middle), f"whisker {look.colour}"),
        svg.line((p90, middle - 7), (p90, middle + 7), f"whisker {look.colour}"),
        svg.line((p99, middle - 4), (p99, middle + 4), f"whisker {look.colour}"),
        look.marker((p50, middle), 5),
    ]
    return svg.group(parts, hint=f"{look.arm}: {_note(one)}")


def _note(one: Times) -> str:
    if one.p50.value is None:
        return ""
    return f"p50 {numbers.seconds(one.p50.value)} · p99 {numbers.seconds(one.p99.value)}"
