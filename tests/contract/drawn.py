"""Constraints drawn at random, for tests that hold for all of them."""

import json
from typing import Any

from hypothesis import strategies as st

from harness.constraint import Grammar, JsonSchema, Labels, Regex, escape

LETTERS = "abcé悪😀 0\n\t.-/\\]\"'"
CLASSES = ["[a-c]", "[^a]", r"\d", r"\w", r"\s", r"[^\s\d]", ".", "[é-ü]", r"[\]\[^-]", "[😀-😃x]", r"[^\n\"]"]


def regexes() -> st.SearchStrategy[Regex]:
    """Regexes of the subset in `harness.regexes`, with and without anchors."""
    leaf = st.one_of(st.sampled_from(LETTERS).map(escape), st.sampled_from(CLASSES))
    inner = st.recursive(leaf, _longer, max_leaves=8)
    return st.tuples(st.sampled_from(["{}", "^{}$", r"\A({})\Z"]), inner).map(
        lambda drawn: Regex(drawn[0].format(f"({drawn[1]})"))
    )


def _longer(part: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.lists(part, min_size=2, max_size=3)
    times = st.sampled_from(["*", "+", "?", "{2}", "{0,3}", "{1,2}", "{2,}", "*?", "??"])
    return st.one_of(
        several.map("".join),
        several.map(lambda parts: "(" + "|".join(parts) + ")"),
        st.tuples(part, times).map(lambda drawn: f"({drawn[0]}){drawn[1]}"),
    )


def labels() -> st.SearchStrategy[Labels]:
    """Labels that share beginnings, in any order."""
    word = st.text(alphabet="abé+.( 悪", min_size=1, max_size=6).filter(lambda text: text == text.strip())
    return st.lists(word, min_size=1, max_size=5, unique=True).map(lambda drawn: Labels(tuple(drawn)))


def grammars() -> st.SearchStrategy[Grammar]:
    """Grammars whose recursion is neither left-recursive nor without an end."""
    return st.sampled_from(
        [
            'root ::= "(" root ")" | [a-z]{1,3} | ""',
            'root ::= item ("," " "? item)*\nitem ::= "\\"" [a-zé]{1,4} "\\"" | [0-9]+',
            'root ::= "a" root "b" | "é" root? "悪" | "-"',
            'root ::= value\nvalue ::= "[" (value ("," value)*)? "]" | [^\\[\\],]{1,3}',
            'root ::= term (("+" | "*") term)*\nterm ::= [0-9]{1,2} | "(" root ")"',
            'root ::= "x"{2,4} "😀"? # comment\n',
            'root ::= "a" | [^b] "a" | "b" dead # which no text ends\ndead ::= "c" dead',
        ]
    ).map(Grammar)


def schemas() -> st.SearchStrategy[JsonSchema]:
    """JSON schemas out of the parts that every engine takes."""
    leaf: st.SearchStrategy[Any] = st.sampled_from(
        [
            {"type": "string"},
            {"type": "integer"},
            {"type": "number"},
            {"type": "boolean"},
            {"type": "null"},
            {"enum": ["très bien", "悪い", "a"]},
            {"const": 'say "hi"'},
        ]
    )
    inner = st.recursive(leaf, _nested, max_leaves=4)
    return st.tuples(inner, st.sampled_from(["compact", "flexible"])).map(
        lambda drawn: JsonSchema(json.dumps(drawn[0], ensure_ascii=False), drawn[1])
    )


def _nested(part: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.lists(st.sampled_from(["a", "b c", "é", "id"]), min_size=1, max_size=3, unique=True)
    return st.one_of(
        st.tuples(names, st.lists(part, min_size=3, max_size=3), st.integers(0, 3)).map(_object),
        part.map(lambda item: {"type": "array", "items": item, "maxItems": 2}),
        st.lists(part, min_size=2, max_size=2).map(lambda parts: {"anyOf": parts}),
    )


def _object(drawn: tuple[list[str], list[Any], int]) -> dict[str, Any]:
    names, parts, required = drawn
    return {
        "type": "object",
        "properties": dict(zip(names, parts, strict=False)),
        "required": names[:required],
        "additionalProperties": False,
    }
