"""Right and wrong."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.scorers import Exact, Json, Number, Sql, leaves, number, score


def test_a_longer_answer_is_not_the_shorter_label_nor_the_other_way_round() -> None:
    """BC-02: scoring is by equality."""
    assert not score(Exact(), "no evidence", "no", {}).right
    assert not score(Exact(), "no", "no evidence", {}).right
    assert score(Exact(), " no evidence\n", "no evidence", {}).right


@pytest.mark.parametrize("text", ["12", "12.0", " 12\n", "+12", "1.2e1"])
def test_one_number_may_be_spelt_in_many_ways(text: str) -> None:
    assert score(Number(), text, "12", {}).right


@pytest.mark.parametrize("text", ["twelve", "12 apples", "1,2", "", "-", "NaN", "Infinity", "12 12", "0x0c"])
def test_what_is_not_a_number_as_a_whole_is_no_answer(text: str) -> None:
    judged = score(Number(), text, "12", {})
    assert judged.answer is None
    assert not judged.right


def test_commas_group_three_digits() -> None:
    assert number("1,200,000") == Decimal(1200000)
    assert number("12,00") is None


@given(st.integers() | st.decimals(allow_nan=False, allow_infinity=False, places=3))
def test_every_number_equals_itself(value: int | Decimal) -> None:
    assert score(Number(), str(value), str(value), {}).right


def test_both_spellings_of_a_character_are_one_json_value() -> None:
    """BC-11: an escaped and a raw character parse to the same label and score the same."""
    gold = {"tone": "悪い"}
    for text in ('{"tone":"悪い"}', '{"tone":"\\u60aa\\u3044"}'):
        assert score(Json(), text, gold, {}) == score(Json(), '{"tone": "悪い"}', gold, {})
        assert score(Json(), text, gold, {}).right


def test_key_order_does_not_count_and_array_order_does() -> None:
    assert score(Json(), '{"b": 1, "a": [1, 2]}', {"a": [1, 2], "b": 1}, {}).right
    assert not score(Json(), '{"a": [2, 1], "b": 1}', {"a": [1, 2], "b": 1}, {}).right


def test_partial_credit_is_the_f1_of_the_leaves() -> None:
    judged = score(Json(), '{"a": 1, "b": 2, "c": 3}', {"a": 1, "b": 9}, {})
    assert not judged.right
    assert judged.score == pytest.approx(2 * 1 / (3 + 2))


def test_true_is_not_one() -> None:
    assert not score(Json(), '{"a": true}', {"a": 1}, {}).right
    assert score(Json(), '{"a": 1.0}', {"a": 1}, {}).right


def test_text_that_is_not_json_has_no_credit() -> None:
    assert score(Json(), "{", {"a": 1}, {}).score == 0.0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_every_value_is_right_against_itself(value: object) -> None:
    import json

    judged = score(Json(), json.dumps(value), value if not isinstance(value, str) else json.dumps(value), {})
    assert judged.right
    assert judged.score == pytest.approx(1.0)
    assert len(list(leaves(value))) >= 1


TABLE = "CREATE TABLE dogs (name TEXT, breed TEXT, weight REAL, age INTEGER);"
GOLD = "SELECT name FROM dogs WHERE weight > 20.5 ORDER BY age DESC LIMIT 3;"


@pytest.mark.parametrize(
    ("said", "right"),
    [
        (GOLD, True),
        ("select name from dogs where 20.5 < weight order by age desc limit 3", True),
        (GOLD.replace(">", "<"), False),
        (GOLD.replace("DESC", "ASC"), False),
        (GOLD.replace("LIMIT 3", "LIMIT 4"), False),
        (GOLD.replace("name", "breed", 1), False),
        ("SELECT name FROM cats;", False),
        ("DROP TABLE dogs;", False),
        ("SELECT name FROM dogs; DROP TABLE dogs;", False),
        ("", False),
        ("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n) SELECT x FROM n;", False),
    ],
)
def test_a_statement_is_right_where_it_gives_the_same_rows(said: str, right: bool) -> None:
    assert score(Sql(), said, GOLD, {"schema": TABLE}).right is right


def test_row_order_counts_only_where_the_right_statement_sorts() -> None:
    gold = "SELECT name, age FROM dogs WHERE age > 5;"
    assert score(Sql(), gold.replace(";", " ORDER BY age ASC;"), gold, {"schema": TABLE}).right
