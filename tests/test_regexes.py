"""The regex subset: read as Python reads it, and written so that all engines read it alike."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.constraint import Regex
from harness.errors import Unsupported
from harness.expression import beyond_empty
from harness.grammar import recognises
from harness.regexes import portable, searched, tree
from harness.spelling import spell
from tests.contract.drawn import LETTERS, regexes

TEXTS = st.text(alphabet=LETTERS + "123xÿ", max_size=6)


@settings(deadline=None, max_examples=200, derandomize=True)
@given(regex=regexes(), text=TEXTS)
def test_a_tree_and_its_spelling_match_what_python_matches(regex: Regex, text: str) -> None:
    wanted = re.fullmatch(regex.pattern, text, re.ASCII) is not None
    assert recognises({"root": tree(regex.pattern)}, text) is wanted
    assert (re.fullmatch(portable(regex.pattern), text) is not None) is wanted


@settings(deadline=None, max_examples=200, derandomize=True)
@given(regex=regexes(), text=TEXTS)
def test_the_texts_beyond_the_empty_one_are_the_others(regex: Regex, text: str) -> None:
    filled, empty = beyond_empty(tree(regex.pattern))
    assert empty is (re.fullmatch(regex.pattern, "", re.ASCII) is not None)
    wanted = bool(text) and re.fullmatch(regex.pattern, text, re.ASCII) is not None
    assert recognises({"root": filled}, text) is wanted


@pytest.mark.parametrize(
    ("pattern", "spelling"),
    [
        ("^(yes|no)$", "(yes|no)"),
        (r"\Ayes|no\Z", "(yes|no)"),
        (r"\d\w\s.", r"[0-9][0-9A-Z_a-z][\t-\r ][^\n]"),
        (r"[^\d]", "[^0-9]"),
        (r"[\]\[^&~-]\ \n", r"[&\-\[\]\^~] \n"),
        ("(?:ab|cd)*?", "(ab|cd)*"),
        ("(?P<name>a)(?#comment)b", "ab"),
        ("a|", "(a)?"),
        ("[^;]{1,129}", "[^;]{1,129}"),
        ("a{2}b{3,}c{0}", "a{2}b{3,}"),
        ("\x00é😀", "\\x00é😀"),
    ],
)
def test_patterns_are_spelt_in_one_way(pattern: str, spelling: str) -> None:
    """BC-07 and BC-01 (a space stays a space, a line feed becomes an escape)."""
    assert portable(pattern).removeprefix("(").removesuffix(")") == spelling.removeprefix("(").removesuffix(")")


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(?!no)[a-z]+", "lookaround"),
        (r"(?=.*\d)[a-z0-9]{4}", "lookaround"),
        ("(?<=a)b", "lookaround"),
        (r"\bcat\b", "word boundaries"),
        (r"(a)\1", "back references"),
        ("(a)?(?(1)b|c)", "conditional"),
        ("a^b", "an anchor inside"),
        ("(a$)*", "an anchor inside"),
        ("(?i)a", "flag"),
        ("(?s).", "flag"),
        ("(?i:a)b", "flags"),
        ("(?>a)", "atomic"),
        ("a++", "possessive"),
        (r"[^\s\S]", "matches nothing"),
    ],
)
def test_what_is_outside_the_subset_is_unsupported_with_its_reason(pattern: str, reason: str) -> None:
    """BC-07."""
    with pytest.raises(Unsupported, match=reason):
        portable(pattern)


@pytest.mark.parametrize("pattern", ["[0-9]", "^a", "é$", "^(no|no evidence)$", r"\s", r"^\S.\S$", r"[^\s]"])
@given(text=st.text(alphabet="abé09 \n\u2028\ufeff\u00a0no", max_size=4))
def test_a_pattern_of_json_schema_is_found_anywhere_unless_it_is_anchored(pattern: str, text: str) -> None:
    """Never where Python's search would not find it; and where ASCII texts are searched, just there."""
    found = recognises({"root": searched(pattern)}, text)
    python = re.search(pattern.replace("$", r"\Z"), text) is not None
    assert python or not found
    assert found is python or not text.isascii()


@pytest.mark.parametrize("pattern", [r"\D", r"\W", r"[^\d]", "^a|b$", "(?=a)"])
def test_a_pattern_that_ecma_and_python_read_differently_is_unsupported(pattern: str) -> None:
    with pytest.raises(Unsupported):
        searched(pattern)


def test_a_spelling_is_read_back_as_the_same_tree() -> None:
    for pattern in ("(yes|no)", "[a-c]{1,3}(é|😀)?", r"\d+(\.\d+)?", "((a|b)*c|d{2,})+"):
        assert portable(spell(tree(pattern))) == portable(pattern)
