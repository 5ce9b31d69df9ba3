"""The judge of JSON answers."""

from typing import Any

import pytest

from harness.constraint import json_schema, judge


def _accepted(schema: object, text: str) -> bool:
    return judge(json_schema(schema), text).accepted


@pytest.mark.parametrize(
    ("schema", "text", "right"),
    [
        ({"type": "integer", "minimum": -70}, "-71", False),
        ({"type": "integer", "minimum": -70}, "-70", True),
        ({"type": "integer", "minimum": -70}, "-8", True),
        ({"type": "integer", "minimum": -70}, "0", True),
        ({"type": "integer", "minimum": -70}, "12", True),
        ({"type": "integer", "minimum": -70}, "-", False),
        ({"type": "integer", "minimum": -70}, "-0", True),
        ({"type": "integer", "minimum": -70}, "007", False),
        ({"type": "number", "exclusiveMinimum": 10}, "10", False),
        ({"type": "number", "exclusiveMinimum": 10}, "10.5", True),
        ({"type": "number", "exclusiveMinimum": 10}, "9.99", False),
        ({"type": "number", "minimum": 2, "maximum": 6}, "6", True),
        ({"type": "number", "minimum": 2, "maximum": 6}, "6.4", False),
        ({"type": "number", "minimum": 2, "maximum": 6}, "1.9", False),
        ({"type": "number", "minimum": -3, "maximum": 3}, "-0.25", True),
        ({"type": "number", "minimum": -3, "maximum": 3}, "30", False),
    ],
)
def test_bounds_of_numbers_hold(schema: Any, text: str, right: bool) -> None:
    """BC-12."""
    assert _accepted(schema, text) is right


@pytest.mark.parametrize(
    ("text", "right"),
    [('"2024-13-45"', False), ('"2024-02-30T25:61:00Z"', False), ('"2024-02-29T12:00:00Z"', True)],
)
def test_formats_are_checked(text: str, right: bool) -> None:
    """BC-15."""
    assert _accepted({"type": "string", "format": "date-time"}, text) is right


def test_a_format_that_nobody_checks_is_named() -> None:
    """BC-15."""
    schema = json_schema({"properties": {"a": {"format": "no-such-format"}, "b": {"format": "int32"}}})
    assert judge(schema, '{"a": "x"}').unchecked == ("no-such-format",)


@pytest.mark.parametrize("text", ["", "{", '{"a": 1} {"a": 1}', "NaN", "[1,]", "{'a': 1}", '"a\tb"', "-", "01"])
def test_what_is_not_one_json_value_is_refused(text: str) -> None:
    verdict = judge(json_schema({}), text)
    assert not verdict.accepted
    assert verdict.reason.startswith("not JSON")


@pytest.mark.parametrize("text", ['{"tone":"悪い"}', '{"tone":"\\u60aa\\u3044"}', '\n { "tone" :\t"悪い" } '])
def test_spellings_of_one_value_are_judged_alike(text: str) -> None:
    """BC-11."""
    assert _accepted({"type": "object", "properties": {"tone": {"enum": ["très bien", "悪い"]}}}, text)


def test_where_the_validators_disagree_the_answer_is_not_valid_and_it_is_shown() -> None:
    verdict = judge(json_schema({"type": "string", "pattern": r"^\d+$"}), '"١"')
    assert not verdict.accepted
    assert verdict.disagreement == "jsonschema says True, jsonschema-rs says False"


@pytest.mark.parametrize(("bound", "right"), [({}, True), ({"maximum": 5}, False), ({"minimum": 5}, True)])
def test_a_number_beyond_every_double_is_a_large_number(bound: dict[str, int], right: bool) -> None:
    assert _accepted({"type": "number", **bound}, "1e999") is right


def test_half_a_surrogate_pair_is_refused_and_does_not_end_the_run() -> None:
    assert judge(json_schema({"type": "string"}), '"\\ud800"').reason == "a string holds half a surrogate pair"


@pytest.mark.parametrize("depth", [400, 100_000])
def test_a_value_nested_too_deeply_is_refused_and_does_not_end_the_run(depth: int) -> None:
    schema = json_schema({"type": "array", "items": {"$ref": "#"}})
    assert judge(schema, "[" * depth + "]" * depth).reason == "nested too deeply to be judged"


def test_a_schema_names_its_draft() -> None:
    draft4 = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "type": "integer",
        "minimum": 3,
        "exclusiveMinimum": True,
    }
    assert not _accepted(draft4, "3")
    assert _accepted(draft4, "4")
