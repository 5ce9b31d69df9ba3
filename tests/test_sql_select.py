"""The example of a parser of one's own: a SELECT statement, by `harness/masks/sql_select.py`."""

import json
import re
import sqlite3
from functools import cache
from pathlib import Path
from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.constraint import Grammar, Labels, Regex, accepts
from harness.errors import Unsupported
from harness.mask import Automaton
from harness.masks import engine
from harness.masks.sql_select import ENGINE, SqlSelect
from harness.processors.protocols import load_factory
from harness.processors.sql_select import async_factory, factory
from tests.contract.walking import a_vocabulary, may, says, takes

TASK = Path(__file__).parents[1] / "tasks/sql"
GRAMMAR = Grammar((TASK / "grammar.ebnf").read_text(encoding="utf-8"))
ROWS = [json.loads(line) for line in (TASK / "test.jsonl").read_text(encoding="utf-8").splitlines()]

NAME = r"[a-z_][a-z0-9_]{0,29}"
COLUMN = rf"(?:{NAME}|COUNT\(\*\)|(?:SUM|AVG|MIN|MAX)\({NAME}\))"
LITERAL = r"(?:-?(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,4})?|'[^'\n\r]{1,40}')"
CONDITION = rf"{NAME} (?:=|!=|<=|>=|<|>) {LITERAL}"
STATEMENT = re.compile(
    rf"SELECT (?:\*|{COLUMN}(?:, {COLUMN}){{0,4}}) FROM {NAME}"
    rf"(?: WHERE {CONDITION}(?: (?:AND|OR) {CONDITION}){{0,3}})?"
    rf"(?: GROUP BY {NAME})?(?: ORDER BY {NAME}(?: ASC| DESC)?)?(?: LIMIT [1-9][0-9]{{0,3}})?;"
)


@cache
def automaton(vocabulary_name: str) -> Automaton:
    return ENGINE.compiler(a_vocabulary(vocabulary_name)).compile(GRAMMAR)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 9999), vocabulary_name=st.sampled_from(["byte_level", "sentencepiece"]))
def test_whatever_it_lets_end_is_a_statement_of_the_regex_and_of_the_grammar(seed: int, vocabulary_name: str) -> None:
    known, random, said = a_vocabulary(vocabulary_name), Random(seed), list[int]()
    matcher = automaton(vocabulary_name).matcher()
    while not (now := may(matcher, known)) & set(known.stop_ids):
        assert now
        assert len(said) < 2000
        ends = [i for i in now if (known.tokens[i] or b"") in (b";", b" ", b"'", b")")]
        said.append(random.choice(ends if ends and random.random() < 0.3 else sorted(now)))
        matcher.advance(said[-1])
    assert now == set(known.stop_ids)
    text = known.bytes_of(said).decode()
    assert STATEMENT.fullmatch(text)
    assert accepts(GRAMMAR, text)


def test_every_right_answer_of_the_task_can_be_said_and_runs_in_sqlite() -> None:
    known = a_vocabulary("byte_level")
    assert len(ROWS) > 100
    for row in ROWS:
        assert takes(automaton("byte_level"), known, row["sql"]), row["sql"]
        with sqlite3.connect(":memory:") as database:
            database.execute(row["schema"])
            database.execute(row["sql"])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, b FROM t WHERE x <= -1.5 OR y != 'été 😀' GROUP BY b ORDER BY a LIMIT 10;",
        "SELECT a, b, c, d, e FROM t WHERE a = 1 AND b = 2 AND c = 3 AND d = 4;",
        "SELECT MIN(a), COUNT(*) FROM t ORDER BY a DESC;",
    ],
)
def test_the_ends_of_the_language_can_be_said(text: str) -> None:
    assert says(automaton("byte_level"), a_vocabulary("byte_level"), text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, b, c, d, e, f FROM t;",
        "SELECT a FROM t WHERE a = 1 AND b = 2 AND c = 3 AND d = 4 OR e = 5;",
        "SELECT *, a FROM t;",
        "SELECT a FROM t WHERE a = '';",
        "SELECT a FROM t WHERE a = 01;",
        "SELECT a  FROM t;",
        "SELECT a FROM t LIMIT 0;",
        "SELECT a FROM t LIMIT 1 ORDER BY a;",
        "SELECT SUM(*) FROM t;",
        "SELECT a FROM t",
        "select a from t;",
    ],
)
def test_what_is_outside_the_language_cannot_be_said(text: str) -> None:
    assert not says(automaton("byte_level"), a_vocabulary("byte_level"), text)


def test_its_tokens_are_those_of_the_same_grammar_in_the_reference_engine() -> None:
    known, random = a_vocabulary("sentencepiece"), Random(5)
    matcher = automaton("sentencepiece").matcher()
    reference = engine("reference").compiler(known).compile(GRAMMAR).matcher()
    for _ in range(60):
        now = may(matcher, known)
        assert now == may(reference, known)
        if now == set(known.stop_ids):
            break
        token = random.choice(sorted(now))
        matcher.advance(token)
        reference.advance(token)


def test_it_is_a_processor_by_its_path_and_forbids_what_its_masks_forbid() -> None:
    known = a_vocabulary("byte_level")
    made = load_factory("harness.processors.sql_select:factory")
    assert made is factory
    processor = made(GRAMMAR, known)
    said: list[int] = []
    for character in "SELECT a":
        token = known.tokens.index(character.encode())
        logits = processor(list(said), torch.zeros(known.width))
        assert logits[token] == 0
        said.append(token)
    allowed = {i for i, logit in enumerate(processor(list(said), torch.zeros(known.width)).tolist()) if logit == 0}
    matcher = automaton("byte_level").matcher()
    for token in said:
        matcher.advance(token)
    assert allowed == may(matcher, known)


def test_it_is_an_engine_and_an_async_processor_by_its_path() -> None:
    assert engine("harness.masks.sql_select:ENGINE") is ENGINE
    assert load_factory("harness.processors.sql_select:async_factory") is async_factory


def test_what_is_no_grammar_is_left_to_the_library() -> None:
    known = a_vocabulary("byte_level")
    compiler = ENGINE.compiler(known)
    assert says(compiler.compile(Labels(("yes", "no"))), known, "yes")
    with pytest.raises(Unsupported):
        compiler.compile(Regex("(?=a)a"))


def test_it_runs_in_the_library_as_it_is() -> None:
    """As a user of lm-format-enforcer would run it, without the harness's engine."""
    from lmformatenforcer import TokenEnforcer, TokenEnforcerTokenizerData

    letters = [(byte, chr(byte), False) for byte in range(0x20, 0x7F)]
    data = TokenEnforcerTokenizerData(letters, lambda ids: "".join(map(chr, ids)), 0, False, 0x7F)
    enforcer, said = TokenEnforcer(data, SqlSelect()), list[int]()
    for character in "SELECT name FROM t WHERE name = 'x y' OR a < 3;":
        assert ord(character) in enforcer.get_allowed_tokens(said).allowed_tokens
        said.append(ord(character))
    assert enforcer.get_allowed_tokens(said).allowed_tokens == [0]
