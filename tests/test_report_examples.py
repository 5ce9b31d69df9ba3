"""The examples of a report: which are shown, how text of models is made fit to be seen, and what the mask did."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.report import html, interest, tokens, visible
from harness.report.examples import AnswerView, ExampleView, SectionView
from harness.report.interest import Sighting, choose, sighting
from harness.report.palette import Look
from harness.report.token_view import TokenView, token_views
from harness.report.tokens import TokenTexts
from harness.request import Completion, Timing, Trace
from harness.vocabulary import Vocabulary

NASTY = ("</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "a\u2028b", "\u202egnp.exe",
         '"><svg onload=x>', "x" * 5000, "\x00\x1b[31m", "{{ 7*7 }}", "]]><!--", "&lt;b&gt;")  # fmt: skip


def test_an_example_on_which_all_arms_say_the_same_right_thing_is_not_shown() -> None:
    seen = sighting(0, 1, True, "valid")
    seen.add(9, 1, True, "valid")
    assert choose({"a": seen}, 10) == interest.Chosen((), 0, 1)


@pytest.mark.parametrize(
    ("second", "kinds"),
    [
        ((2, True, "valid"), ("answers differ",)),
        ((1, False, "valid"), ("verdicts differ",)),
        ((1, True, "truncated"), ("not valid",)),
    ],
)
def test_an_example_is_shown_for_what_differs(second: tuple[int, bool, str], kinds: tuple[str, ...]) -> None:
    seen = sighting(0, 1, True, "valid")
    seen.add(9, *second)  # type: ignore[arg-type]
    assert seen.kinds == kinds


def test_a_rare_sort_of_difference_is_shown_beside_a_frequent_one() -> None:
    frequent = {f"f{i}": Sighting((0,), 1, True, texts_differ=True) for i in range(100)}
    rare = {"r": Sighting((0,), 1, True, invalid=True)}
    chosen = choose(frequent | rare, 10)
    assert "r" in chosen.ids
    assert (len(chosen.ids), chosen.interesting, chosen.examples) == (10, 101, 101)


@given(st.text(), st.integers(1, 50))
def test_no_invisible_character_of_a_model_stays_invisible(text: str, limit: int) -> None:
    shown = visible.readable(text, limit)
    assert not any(c in shown for c in "\u2028\u2029\u202e\u202d\u200f\u200e\x00\x1b\ufeff\r")


def test_a_cut_text_says_how_much_is_missing() -> None:
    assert visible.readable("a" * 1500, 200) == "a" * 200 + "… (1,300 characters more)"


def test_spaces_and_line_breaks_of_a_token_are_drawn() -> None:
    assert visible.token(" \n\tx") == "·⏎⇥x"


def test_tokens_are_shown_by_text_and_unknown_ones_by_number(tmp_path: Path) -> None:
    tokens.write(tmp_path, Vocabulary((b"a", " caf\u00e9".encode(), b"\xe2\x82", None), (3,), 8))
    texts = tokens.read(tmp_path, (3,))
    assert [texts.show(i) for i in (0, 1, 2, 3, 7, None)] == ["a", "·café", "\\xe2\\x82", "⟨end⟩", "#7", "–"]


def test_a_run_without_token_texts_shows_numbers(tmp_path: Path) -> None:
    assert tokens.read(tmp_path, ()).show(5) == "#5"


def test_a_token_shows_its_probability_before_and_after_the_mask_as_defined_for_all_methods() -> None:
    """BC-31: logits yes 1, no 0, the 3; allowed yes and no: raw 0.114, masked 0.731, kept 0.156."""
    raw, whole = math.exp(1.0), math.exp(1.0) + math.exp(0.0) + math.exp(3.0)
    kept = (math.exp(1.0) + 1) / whole
    trace = Trace(
        (math.log(raw / whole),), (math.log(raw / (raw + 1)),), (kept,), (2,), (2,), (math.log(math.exp(3.0) / whole),)
    )
    view = token_views(_completion((0,), trace), TokenTexts(["yes", "no", "the"]), 9)[0]
    assert (view.before, view.after, view.kept, view.allowed) == ("0.114", "0.731", "0.156", "2")
    assert (view.wanted, view.wanted_before) == ("the", "0.844")


def test_a_token_that_the_model_wanted_itself_shows_no_other_wish() -> None:
    trace = Trace((0.0,), (0.0,), (1.0,), (1,), (0,), (0.0,))
    view = token_views(_completion((0,), trace), TokenTexts(["yes"]), 9)[0]
    assert (view.wanted, view.forced) == ("", True)


def test_what_a_deployment_cannot_see_is_a_dash_and_not_a_zero() -> None:
    trace = Trace((None,), (None,), (None,), (None,), (None,), (None,))
    view = token_views(_completion((0,), trace), TokenTexts(["yes"]), 9)[0]
    assert (view.before, view.after, view.kept, view.allowed, view.wanted) == ("–", "–", "–", "–", "")


@pytest.mark.parametrize("nasty", NASTY)
def test_nothing_that_a_model_says_becomes_markup(nasty: str) -> None:
    page = html.render_examples([_view(nasty)], 10**6)[0]
    tags = {piece.split(">")[0].split()[0].strip("/") for piece in page.split("<")[1:]}
    ours = "details summary bdi span div h3 p dl dt dd table thead tbody tr th td svg line circle polygon wbr"
    assert tags <= {*ours.split()}


def test_examples_stop_where_their_room_ends_but_one_is_always_shown() -> None:
    views = [_view("x" * 400)] * 50
    assert len(html.render_examples(views, 10)) == 1
    shown = html.render_examples(views, 20_000)
    assert 1 < len(shown) < 50
    assert sum(len(one.encode()) for one in shown) <= 20_000


def _completion(ids: tuple[int, ...], trace: Trace) -> Completion:
    return Completion("r", "yes", ids, "stop", Timing(0, 0, 0), 1, len(ids), trace=trace)


def _view(text: str) -> ExampleView:
    token = TokenView(text, "0.1", "0.2", "0.5", "2", text, "0.7", False)
    section = SectionView(text, True, text, (token,), 3)
    answer = AnswerView(Look(text, 0), "invalid", "wrong", text, text, (("label", "0.5"),), (text,), (section, section))
    return ExampleView(text, ("not valid",), text, text, (text,), (answer,))
