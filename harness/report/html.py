"""The page: one HTML file with its styles, pictures and script inside, which asks nothing of any other machine."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import jinja2
import msgspec
from markupsafe import Markup, escape

from harness import __version__
from harness.report import visible
from harness.report.examples import ExampleView
from harness.report.page import TaskPage

TEMPLATES = Path(__file__).parent / "templates"


class Page(msgspec.Struct, frozen=True):
    """A report over one or more tasks."""

    title: str
    subtitle: str
    tasks: tuple[TaskPage, ...]
    maker: str = f"constrained-decoding-harness {__version__}"


def render(page: Page) -> str:
    """The whole file. Everything that came from models, data or configs is escaped by the templates."""
    assets = {"style": "style.css", "script": "examples.js", "patterns": "patterns.svg"}
    texts = {name: Markup((TEMPLATES / file).read_text(encoding="utf-8")) for name, file in assets.items()}
    return _environment().get_template("report.html.j2").render(page=page, **texts)


def render_examples(views: Sequence[ExampleView], budget: int) -> tuple[Markup, ...]:
    """The examples in order as HTML, as many as fit `budget` bytes; at least one where there is one."""
    template, used = _environment().get_template("example.html.j2"), 0
    made: list[Markup] = []
    for view in views:
        html = Markup(template.render(example=view))
        used += len(html.encode())
        if made and used > budget:
            break
        made.append(html)
    return tuple(made)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = breakable
    return environment


def _shown(value: object) -> object:
    """What the templates write: text that is not markup of our own has its invisible characters drawn."""
    return visible.drawn(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def breakable(name: str) -> Markup:
    """A name of an arm that may be broken after a slash, a colon, a dot or an underscore."""
    marked = escape(visible.drawn(name))
    for character in "/:._":
        marked = marked.replace(character, Markup(f"{character}<wbr>"))
    return marked
