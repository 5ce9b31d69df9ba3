"""Numbers, scales and shapes: what a reader sees is what was measured."""

import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markupsafe import Markup

from harness.report import numbers, palette, scale, svg
from harness.report.frame import fits, thinned

finite = st.floats(-1e9, 1e9, allow_nan=False)
positive = st.floats(1e-9, 1e9)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.8321, "83.2%"),
        (1.0, "100.0%"),
        (0.0, "0.0%"),
        (0.99999, ">99.9%"),
        (0.00001, "<0.1%"),
        (None, "–"),
        (-0.004, "−0.4%"),
    ],
)
def test_a_share_is_never_rounded_to_a_certainty_that_it_is_not(value: float | None, shown: str) -> None:
    assert numbers.percent(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.0, "1"), (0.0, "0"), (0.73106, "0.731"), (0.9999, ">0.999"), (0.0001, "<0.001"), (None, "–")],
)
def test_a_probability_is_never_rounded_to_a_certainty_that_it_is_not(value: float | None, shown: str) -> None:
    assert numbers.probability(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0123456, "0.0123"), (4.567, "4.57"), (185.4, "185"), (12345.6, "12,300"), (0.0, "0"), (-0.5, "−0.500")],
)
def test_significant_digits_are_three_at_any_size(value: float, shown: str) -> None:
    assert numbers.significant(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(1.5, "1.50 s"), (0.0415, "41.5 ms"), (4.15e-4, "415 µs"), (3e-8, "0.0300 µs"), (None, "–")]
)
def test_a_duration_is_written_in_the_unit_that_suits_it(value: float | None, shown: str) -> None:
    assert numbers.seconds(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0, "p < 0.001"), (0.0123, "p = 0.012"), (0.5, "p = 0.50"), (1.0, "p = 1.00"), (None, "p –")]
)
def test_a_p_value_is_never_written_as_zero(value: float | None, shown: str) -> None:
    assert numbers.p_value(value) == shown


def test_a_p_value_just_below_the_limit_does_not_read_as_the_limit() -> None:
    assert numbers.p_value(0.04999) == "p = 0.0499"


@given(finite)
def test_a_signed_number_shows_a_sign_exactly_where_it_shows_a_digit(value: float) -> None:
    shown = numbers.signed(value, 1)
    assert shown.startswith(("+", "−")) == (re.sub("[^1-9]", "", shown) != "")


@given(st.integers(0, 10**8))
def test_a_compact_count_fits_five_characters(value: int) -> None:
    assert len(numbers.compact(value)) <= 5


@given(finite, finite)
@example(0.0, 5e-324)
@example(1e-15, 2e-15)
@example(1e18, 1e18 + 256.0)
def test_a_straight_axis_holds_its_data_between_its_outer_ticks(one: float, other: float) -> None:
    low, high = sorted((one, other))
    made = scale.spanning(low, high, 0, 100)
    unseen = 1e-6 * (high - low) + 1e-9
    assert len(set(made.ticks)) == len(made.ticks)
    assert made.low < made.high
    assert made.low <= low + unseen
    assert made.high >= high - unseen
    assert 2 <= len(made.ticks) <= 12


@given(st.floats(0.0, 1e6))
def test_an_axis_from_zero_starts_there(high: float) -> None:
    made = scale.from_zero(high, 0, 100)
    assert made.low == 0.0
    assert made.high >= high * (1 - 1e-6)


@given(st.lists(positive, min_size=1, max_size=20))
def test_a_logarithmic_axis_draws_all_its_data_in_order_inside_the_picture(values: list[float]) -> None:
    made = scale.logarithmic(values, 10, 350)
    places = [made.at(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(10 - 1e-6 <= place <= 350 + 1e-6 for place in places)
    assert all(made.low <= tick <= made.high for tick in made.ticks)


@given(st.lists(positive, min_size=2, max_size=20))
def test_a_logarithmic_axis_has_a_tick_to_read_it_by(values: list[float]) -> None:
    assert scale.logarithmic(values, 10, 350).ticks


def test_a_value_past_the_end_of_an_axis_is_drawn_at_its_end() -> None:
    made = scale.share(0, 100)
    assert (made.at(1.2), made.at(-0.1)) == (100, 0)


@given(st.text(min_size=1, max_size=200), st.floats(30, 400))
def test_a_long_label_is_cut_to_its_room(label: str, room: float) -> None:
    cut = fits(label, room)
    assert cut == label or (len(cut) < len(label) and "…" in cut)


def test_tick_labels_that_would_overlap_are_left_out() -> None:
    dense = scale.Scale(0, 10, 0, 50, ticks=tuple(range(11)))
    shown = thinned(dense, ["1,000,000"] * 11)
    assert shown[0]
    assert sum(shown) < 4


@given(st.text())
def test_text_in_a_picture_cannot_leave_its_place(content: str) -> None:
    drawn = svg.text((0, 0), content)
    inside = drawn.removeprefix('<text x="0" y="0" class="">').removesuffix("</text>")
    assert "<" not in inside
    assert Markup(inside).unescape() == content


@given(st.text())
def test_a_hint_in_a_picture_cannot_leave_its_place(content: str) -> None:
    drawn = svg.group([], "c0", content) if content else svg.group([])
    assert drawn.count("<") == (4 if content else 2)


def test_arms_differ_in_letter_and_shape_and_not_only_in_colour() -> None:
    looks = palette.looks([f"arm{i}" for i in range(6)]).values()
    shapes = {str(look.marker((0, 0))).replace(look.colour, "") for look in looks}
    assert len(shapes) == 6
    assert [look.letter for look in looks] == list("ABCDEF")


def test_more_arms_than_letters_still_have_names_of_their_own() -> None:
    letters = [look.letter for look in palette.looks([str(i) for i in range(80)]).values()]
    assert len(set(letters)) == 80


def test_a_shape_without_area_is_not_drawn() -> None:
    assert svg.rect((0, 0), 0, 10, "bar") == ""
    assert math.isclose(scale.from_zero(0.0, 0, 10).high, 1.0)
