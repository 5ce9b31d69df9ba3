"""The oracle of constraints, and what is refused before any request."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.constraint import (
    Constraint,
    Grammar,
    JsonSchema,
    Labels,
    Regex,
    accepts,
    check,
    escape,
    is_trivial,
    json_schema,
    judge,
    labels_pattern,
)
from harness.errors import ConstraintError

SAID = ["C++", "C#", "v1.0", "x|y", "(none)", "50%", "[O]", "\\d", "a-b", "two words", 'say "hi"', "line\nbreak"]
SAID += ["tab\there"]
REFUSED = ["C", "C+++", "v1x0", "x", "y", "none", "O", "7", "aXb", "twowords", "linebreak", ""]


def test_a_pattern_of_labels_matches_the_labels_and_nothing_else() -> None:
    """BC-01."""
    pattern = labels_pattern(SAID)
    assert all(re.fullmatch(pattern, text) for text in SAID)
    assert not any(re.fullmatch(pattern, text) for text in REFUSED)
    assert "\n" not in pattern
    assert "\\ " not in pattern


@given(text=st.text(max_size=8), other=st.text(max_size=8))
def test_an_escaped_text_matches_itself_alone(text: str, other: str) -> None:
    assert re.fullmatch(escape(text), text)
    assert (re.fullmatch(escape(text), other) is not None) == (text == other)


def test_the_order_of_labels_never_matters() -> None:
    """BC-02."""
    assert labels_pattern(["no", "no evidence"]) == labels_pattern(["no evidence", "no"])


@pytest.mark.parametrize(("said", "gold"), [("no evidence", "no"), ("no", "no evidence")])
def test_a_label_that_begins_with_another_is_not_that_one(said: str, gold: str) -> None:
    """BC-02."""
    assert not accepts(Labels((gold,)), said)


@pytest.mark.parametrize(
    ("constraint", "text", "right"),
    [
        (Regex("^(yes|no)$"), "yes", True),
        (Regex("^(yes|no)$"), "yes\n", False),
        (Regex("yes|no"), "yesno", False),
        (Regex(r"\d+"), "١", False),
        (Regex(r"(?!no)[a-z]+"), "nope", False),
        (Grammar('root ::= "a" root | "b"'), "aab", True),
        (Grammar('root ::= "a" root | "b"'), "aa", False),
    ],
)
def test_the_whole_text_is_judged(constraint: Constraint, text: str, right: bool) -> None:
    """BC-07."""
    assert accepts(constraint, text) is right


def test_a_verdict_that_refuses_says_why() -> None:
    assert "not one of the labels" in judge(Labels(("a",)), "b").reason
    assert "as a whole" in judge(Regex("a"), "b").reason
    assert "does not derive" in judge(Grammar('root ::= "a"'), "b").reason


@pytest.mark.parametrize(
    ("constraint", "found"),
    [
        (Labels(()), "labels: the list is empty"),
        (Labels(("", "yes")), "labels: '' is empty"),
        (Labels(("yes", " yes")), "labels: 'yes' stands more than once"),
        (Labels(("yes ", "no")), "labels: 'yes ' begins or ends with white space"),
        (Regex(""), "regex: the pattern is empty"),
        (Regex("(a"), "regex: '(a' is not a regex"),
        (JsonSchema(""), "json_schema: the schema is empty"),
        (JsonSchema("{"), "json_schema: not JSON"),
        (JsonSchema("3"), "json_schema: found 3"),
        (json_schema({"enum": []}), "json_schema: unsatisfiable"),
        (json_schema(False), "json_schema: unsatisfiable"),
        (json_schema({"type": "strin"}), "json_schema: not a schema"),
        (json_schema({"type": "string", "pattern": "(a"}), "json_schema: not a schema"),
        (Grammar(""), "grammar: it is empty"),
        (Grammar("root ::= other"), "grammar, line 1"),
    ],
)
def test_what_no_text_can_meet_is_refused_by_name(constraint: Constraint, found: str) -> None:
    """BC-10 and BC-05 (labels that differ by white space alone)."""
    with pytest.raises(ConstraintError, match=re.escape(found)):
        check(constraint)


@pytest.mark.parametrize(
    "constraint",
    [
        Labels(("no", "no evidence")),
        Regex(r"\d{2}"),
        json_schema({"anyOf": [False, {"type": "null"}]}),
        json_schema({"type": "object", "properties": {"a": False}}),
        Grammar('root ::= "a"'),
    ],
)
def test_what_some_text_meets_is_not_refused(constraint: Constraint) -> None:
    check(constraint)


def test_a_schema_that_every_value_meets_is_no_constraint() -> None:
    """BC-10."""
    assert is_trivial(json_schema({}))
    assert is_trivial(json_schema(True))
    assert not is_trivial(json_schema({"type": "string"}))


def test_characters_of_a_schema_stay_as_they_are() -> None:
    """BC-11."""
    assert "悪い" in json_schema({"enum": ["悪い"]}).schema
    assert json.loads(json_schema({"enum": ["悪い"]}).schema) == {"enum": ["悪い"]}
