"""The page of the mask benchmark in a real browser: inside the width of a phone, legible in the dark, quiet."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from chromium import tab

from harness.constraint import Regex
from harness.mask_bench import page, texts
from harness.mask_bench.config import Limits
from harness.mask_bench.instances import Budget, Case, Instance
from harness.mask_bench.numbers import summarise
from harness.mask_bench.rows import CaseRow, Disputed, EngineRow, PairRow, Row

pytestmark = pytest.mark.browser
NASTY = "</td><script>window.broken=1</script>\u202e" + "w" * 400
ENGINES = ("lm_format_enforcer", "llguidance", "xgrammar", "outlines", "package.of.mine:ENGINE")


@pytest.fixture(scope="module")
def masks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five engines on two constraints, with hostile texts."""
    rows = [_row(name) for name in ("pattern", NASTY)]
    instances = [Instance(row.id, Regex("a"), (Case(NASTY, True),), Budget()) for row in rows]
    summary = summarise(rows, ENGINES, instances, Limits())
    shown = page.render("Mask engines", NASTY, texts.lead(summary), summary, texts.grids(summary))
    file = tmp_path_factory.mktemp("masks") / "masks.html"
    file.write_text(shown, encoding="utf-8")
    return file


def _row(name: str) -> Row:
    walked = {one: EngineRow("ok", "", 0.1, (CaseRow((1.0, 50.0, 9000.0), 2),), 200.0) for one in ENGINES[:-1]}
    died = {ENGINES[-1]: EngineRow("timeout", f"compiling: {NASTY}", None, ())}
    disputed = Disputed("llguidance", "xgrammar", 0, 1, NASTY, NASTY, 3, "viable", NASTY)
    pair = PairRow("llguidance", "xgrammar", 3, 1, 1, 0, 3, 0, 9)
    return Row(name, 0, ENGINES, (True,), (True,), (3,), walked | died, (pair,), (disputed,))


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_keeps_inside_its_window_and_can_be_read(masks: Path, width: int, dark: bool) -> None:
    with tab() as browser:
        browser.open(masks, width, dark=dark)
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run((Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")) == {}
        assert browser.run("window.broken") is None
        assert browser.of("Log.entryAdded") == []
        assert [event["request"]["url"] for event in browser.of("Network.requestWillBeSent")] == [masks.as_uri()]
