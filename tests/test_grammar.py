"""Grammars: how they are read, and what they derive."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.constraint import Grammar
from harness.errors import ConstraintError
from harness.grammar import derives, parse, recognises
from harness.masks.derivative import Derivatives
from harness.masks.gbnf import gbnf
from tests.contract.drawn import grammars

SUMS = """
root ::= sum                     # left-recursive
sum  ::= sum "+" term | term
term ::= [0-9]{1,3} | "(" sum
         ")" | "\\u00e9\\"x"
"""


@pytest.mark.parametrize("text", ["1", "1+2", "(1+(2))", "1+2+3", '1+é"x'])
def test_left_recursion_groups_and_escapes_are_read(text: str) -> None:
    assert derives(SUMS, text)


@pytest.mark.parametrize("text", ["", "1+", "(1", "1234", "1 + 2", "é"])
def test_what_is_no_sum_is_not_derived(text: str) -> None:
    assert not derives(SUMS, text)


@pytest.mark.parametrize("grammar", ['root ::= root root | "a" | ""', 'root ::= a\na ::= b "x"?\nb ::= a | "a"'])
def test_rules_that_lead_to_themselves_come_to_an_end(grammar: str) -> None:
    assert derives(grammar, "a")
    assert not derives(grammar, "b")


@pytest.mark.parametrize(
    ("pattern", "right", "wrong"),
    [
        ('"a"*', ["", "aaa"], ["b"]),
        ('"a"+', ["a", "aa"], [""]),
        ('("a" | "bc"){2}', ["aa", "abc", "bcbc"], ["a", "aaa"]),
        ('"a"{2,}', ["aa", "aaaa"], ["a"]),
        ('"a"{1,3}', ["a", "aaa"], ["", "aaaa"]),
        ("[^a-c\\]\\n]", ["d", "é", "😀"], ["a", "]", "\n", ""]),
        ("[\\x41\\U0001F600-]", ["A", "😀", "-"], ["B"]),
        ('"" | "\\t\\\\"', ["", "\t\\"], ["t"]),
        ('("a"? "b"?)*', ["", "abba"], ["c"]),
    ],
)
def test_each_part_of_the_notation_means_what_it_says(pattern: str, right: list[str], wrong: list[str]) -> None:
    assert all(derives(f"root ::= {pattern}", text) for text in right)
    assert not any(derives(f"root ::= {pattern}", text) for text in wrong)


@pytest.mark.parametrize(
    ("grammar", "found"),
    [
        ("", "it is empty"),
        ('x ::= "a"', "no rule is called root"),
        ('root ::= "a" root', "root derives no text"),
        ('root ::= "a"\n\nother ::= missing', "line 3: the rule 'missing' is not defined"),
        ('root ::= "a"\nroot ::= "b"', "line 2: the rule 'root' is defined twice"),
        ('root ::= "a', "line 1: cannot read"),
        ("root ::= [b-a]", "line 1: the range b-a runs backwards"),
        ('root ::= ("a"', "line 1: found 'the end'"),
        ('root ::= "a" |\nx ::= "b"', "line 2: found 'x'"),
        ('root ::= "a"{3,2}', "line 1: {3,2}"),
        ('root ::= "\\q"', "line 1: the escape"),
        ('root = "a"', "line 1: cannot read"),
        ('\n\nroot ::= "a" )', "line 3: found ')'"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(grammar: str, found: str) -> None:
    with pytest.raises(ConstraintError, match=re.escape(found)):
        parse(grammar)


def test_parts_that_no_text_ends_in_are_left_out() -> None:
    grammar = 'root ::= "a" | "b" dead | "c" dead*\ndead ::= "d" dead'
    assert parse(grammar) == parse('root ::= "a" | "c" ""')


@settings(deadline=None, max_examples=150, derandomize=True)
@given(grammar=grammars(), text=st.text(alphabet='()abé悪-[],"01+* x😀', max_size=8))
def test_two_recognisers_of_different_make_agree(grammar: Grammar, text: str) -> None:
    derivatives = Derivatives(parse(grammar.ebnf))
    state = derivatives.start
    for character in text:
        state = derivatives.step(state, ord(character)) if state is not None else None
    assert (state is not None and state.complete) is derives(grammar.ebnf, text)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(grammar=grammars(), text=st.text(alphabet='()abé悪-[],"01+* x😀', max_size=8))
def test_a_grammar_written_out_and_read_again_is_the_same(grammar: Grammar, text: str) -> None:
    rules = parse(grammar.ebnf)
    assert recognises(parse(gbnf(rules)), text) is recognises(rules, text)
