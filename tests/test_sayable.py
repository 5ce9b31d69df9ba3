"""Texts that a model's tokens cannot spell are refused before anything starts."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.constraint import Constraint, Grammar, Labels, Regex, json_schema
from harness.errors import ConstraintError
from harness.sayable import Speech, check_sayable, unsayable
from harness.vocabulary import Vocabulary
from tests.contract.walking import a_vocabulary

FEW = Vocabulary((b"a", b"b", b'"', b"{", b"}", b":", "né".encode(), b"\xe2\x82", b"\xac", None, b"x"), (10,), 12)
"""Tokens for a, b, JSON's signs, `né` but no `n` and no `é`, and the euro sign in two pieces; `x` is the stop token."""


@pytest.mark.parametrize("text", ["", "ab", "né", "anéb", "€", "a€né"])
def test_what_tokens_spell_together_can_be_said(text: str) -> None:
    assert Speech(FEW).spells(text)


@pytest.mark.parametrize("text", ["n", "é", "nb", "an", "x", "c", "₭"])
def test_what_no_tokens_spell_cannot(text: str) -> None:
    assert not Speech(FEW).spells(text)


@settings(deadline=None, max_examples=50)
@given(text=st.text(max_size=8))
def test_a_vocabulary_with_every_byte_spells_every_text(text: str) -> None:
    assert Speech(a_vocabulary("sentencepiece")).spells(text)


@pytest.mark.parametrize(
    ("constraint", "found"),
    [
        (Labels(("ab", "ac")), "the label 'ac': 'c' (U+0063)"),
        (Labels(("ab", "én")), "the label 'én'"),
        (Regex("a(b|cc)"), "'c' (U+0063)"),
        (Labels(("ab", "\ud800")), "the label '\\ud800': '\\ud800' (U+D800)"),
        (Regex("a[c-e]"), "any character from 'c' (U+0063) to 'e' (U+0065)"),
        (Grammar('root ::= "a" more\nmore ::= "b" | "悪"'), "'悪' (U+60AA)"),
        (json_schema({"enum": ["ab", "b悪"]}), "the JSON string 'b悪': '悪' (U+60AA)"),
        (json_schema({"anyOf": [{"const": {"a": ["c"]}}]}), "the JSON string 'c': 'c' (U+0063)"),
        (json_schema({"type": "object", "properties": {"c": {}}}), "the JSON string 'c': 'c' (U+0063)"),
        (json_schema({"$defs": {"c": {"properties": {"a": {"enum": ["d"]}}}}}), "the JSON string 'd': 'd' (U+0064)"),
    ],
)
def test_what_cannot_be_said_is_named(constraint: Constraint, found: str) -> None:
    assert unsayable(constraint, Speech(FEW)) == found


@pytest.mark.parametrize(
    "constraint",
    [
        Labels(("ab", "né", "€")),
        Regex("[a-z]+"),
        Regex("né"),
        Regex("[^a]"),
        Regex("(?=c)c"),
        Grammar('root ::= "a" [^b] | "b" root'),
        json_schema({"type": "string", "pattern": "c", "description": "ccc", "default": "c", "title": "c"}),
        json_schema({"$defs": {"c": {"const": "ab"}}, "$ref": "#/$defs/c"}),
        json_schema(True),
    ],
)
def test_what_can_be_said_in_some_way_is_not_refused(constraint: Constraint) -> None:
    assert unsayable(constraint, Speech(FEW)) is None


def test_the_default_model_has_no_token_for_some_characters_and_says_which_label_holds_one() -> None:
    """Its vocabulary lacks the bytes F1 and F2, with which rare planes begin, and some control characters."""
    known = a_vocabulary("smollm2")
    check_sayable({"1": Labels(("très bien", "悪い", "👍")), "2": Regex(r"\t|[^\n]")}, known)
    with pytest.raises(ConstraintError, match=r"example '2'.*'end\\x04'.*U\+0004.*other characters"):
        check_sayable({"1": Labels(("a",)), "2": Labels(("a", "end\x04"))}, known)
    with pytest.raises(ConstraintError, match=r"U\+40000"):
        check_sayable({"1": json_schema({"const": "\U00040000"})}, known)


def test_a_run_with_a_label_that_cannot_be_said_is_refused_before_its_first_request(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text('{"id": "1", "text": "Hello", "label": "a"}\n', encoding="utf-8")
    (tmp_path / "labels.json").write_text('["a", "end\\u0004"]', encoding="utf-8")
    task = [f"task.data.path={tmp_path / 'data.jsonl'}", f"task.constraint.file={tmp_path / 'labels.json'}"]
    command = [sys.executable, "-m", "harness", "run", "task=intents", *task, f"folder={tmp_path / 'run'}"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert ended.returncode == 2
    assert "the model has no tokens for the label 'end\\x04': '\\x04' (U+0004)" in ended.stderr
    assert not (tmp_path / "run" / "records.jsonl").exists()
