"""The report in a real browser: quiet, offline, inside the width of a phone, legible in the dark."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from chromium import Tab, tab
from report_runs import change_records, write_run

from harness.record import Record
from harness.report.write import write_combined

pytestmark = pytest.mark.browser
NASTY = "</script><script>window.broken=1</script><img src=x onerror='window.broken=1'>\u2028\u202e\u200f" + "w" * 3000
CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One report over three tasks; every third text of the first is hostile."""
    folder = tmp_path_factory.mktemp("report")
    runs = [write_run(folder / task, task, 40) for task in ("intents", "extraction", "word_problems")]
    change_records(runs[0], _hostile)
    return write_combined(runs, folder / "all")


def _hostile(record: Record) -> Record:
    import msgspec

    if int(record.example[-1]) % 3:
        return record
    return msgspec.structs.replace(record, text=NASTY, reason=NASTY, gold=NASTY, flags=(NASTY,))


@pytest.fixture(scope="module")
def browser() -> Iterator[Tab]:
    with tab() as opened:
        yield opened


def _open_all(opened: Tab) -> None:
    opened.run("document.querySelectorAll('details').forEach(one => { one.open = true })")


def test_a_report_opens_without_errors_and_asks_nothing_of_any_machine(browser: Tab, page: Path) -> None:
    browser.open(page, 1280)
    _open_all(browser)
    browser.run("new Promise(done => setTimeout(done, 300))")
    assert [event["request"]["url"] for event in browser.of("Network.requestWillBeSent")] == [page.resolve().as_uri()]
    assert browser.of("Log.entryAdded") == []
    assert browser.of("Runtime.consoleAPICalled") == []
    assert browser.of("Runtime.exceptionThrown") == []


def test_nothing_that_a_model_says_runs(browser: Tab, page: Path) -> None:
    browser.open(page, 1280)
    _open_all(browser)
    assert browser.run("window.broken === undefined")
    assert browser.run("document.scripts.length") == 1
    assert browser.run("document.images.length") == 0


@pytest.mark.parametrize("width", [360, 390, 768, 1280])
def test_a_page_is_never_wider_than_its_window(browser: Tab, page: Path, width: int) -> None:
    browser.open(page, width)
    _open_all(browser)
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("document.documentElement.clientWidth") == width


@pytest.mark.parametrize("dark", [False, True])
def test_all_text_stands_out_from_its_ground(browser: Tab, page: Path, dark: bool) -> None:
    """WCAG AA: 4.5 to 1 for text."""
    browser.open(page, 1280, dark=dark)
    _open_all(browser)
    low = browser.run(f"({CONTRAST})(4.5)")
    assert low == []
    assert browser.run("getComputedStyle(document.body).backgroundColor") == (
        "rgb(15, 19, 23)" if dark else "rgb(255, 255, 255)"
    )


def test_text_in_pictures_can_be_read_on_a_phone(browser: Tab, page: Path) -> None:
    browser.open(page, 390)
    sizes = "[...document.querySelectorAll('svg.chart text')].map(one => one.getBoundingClientRect().height)"
    assert browser.run(f"Math.min(...{sizes})") >= 9


def test_no_text_in_a_picture_leaves_it_or_covers_another(browser: Tab, page: Path) -> None:
    browser.open(page, 390)
    overlaps = (Path(__file__).parent / "overlaps.js").read_text(encoding="utf-8")
    assert browser.run(f"({overlaps})()") == []


def test_the_examples_can_be_narrowed_by_reason_arm_and_text(browser: Tab, page: Path) -> None:
    browser.open(page, 1280)
    listed = "document.querySelectorAll('.browser')[1].querySelectorAll('details.example:not([hidden])').length"
    everything = browser.run(listed)
    _set(browser, ".kind", "not valid")
    invalid = browser.run(listed)
    _set(browser, ".kind", "")
    _set(browser, ".words", "extraction-00007")
    assert 0 < invalid < everything
    assert browser.run(listed) <= 1
    assert browser.run("document.querySelectorAll('.browser .shown')[1].textContent").endswith(
        f"of {everything} listed"
    )


def test_the_arm_filter_lists_what_that_arm_got_wrong(browser: Tab, page: Path) -> None:
    browser.open(page, 1280)
    _set(browser, ".arm", "B")
    marks = browser.run(
        "[...document.querySelectorAll('.browser')[1].querySelectorAll('details.example:not([hidden]) .marks')]"
        ".map(one => one.children[1].textContent)"
    )
    assert marks
    assert all(mark.startswith("B ✗") for mark in marks)


def test_an_example_shows_what_the_mask_did_to_each_token(browser: Tab, page: Path) -> None:
    browser.open(page, 1280)
    heads = browser.run("[...document.querySelector('table.tokens').tHead.rows[0].cells].map(one => one.textContent)")
    assert heads == ["Said", "Before", "After", "Kept", "Allowed", "Wanted"]
    assert browser.run("document.querySelectorAll('tr.wants').length") > 0


def test_examples_can_be_read_without_scripts(browser: Tab, page: Path) -> None:
    browser.ask("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(page, 1280)
    tree = browser.ask("DOM.getDocument", depth=-1)
    found = browser.ask("DOM.querySelectorAll", nodeId=tree["root"]["nodeId"], selector="details.example .said")
    browser.ask("Emulation.setScriptExecutionDisabled", value=False)
    assert len(found["nodeIds"]) > 20


def _set(opened: Tab, control: str, value: str) -> None:
    opened.run(
        f"(() => {{ const one = document.querySelectorAll('.browser')[1].querySelector('{control}');"
        f"one.value = '{value}'; one.dispatchEvent(new Event('input', {{bubbles: true}})); }})()"
    )
