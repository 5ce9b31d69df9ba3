"""Constraints that are known to hurt some engine, with texts at their edges and a budget for each.

Long lengths and large repeats, deep recursion, 128 tools in one union, huge enums, Unicode classes, bounds of
numbers, white space without end.
"""

import json
from collections.abc import Sequence

from harness.constraint import Constraint, Grammar, Labels, Regex, Whitespace, json_schema
from harness.mask_bench.instances import Budget, Case, Instance

TOOLS = 128
DEEP = 40
TREE = {
    "type": "object",
    "properties": {"v": {"type": "integer"}, "next": {"$ref": "#"}},
    "additionalProperties": False,
}
BOUNDS: tuple[tuple[str, dict[str, object], tuple[str, ...], tuple[str, ...]], ...] = (
    ("integer from -70", {"type": "integer", "minimum": -70}, ("-70", "-8", "0", "-0", "12"), ("-71", "-", "007")),
    ("number above 10", {"type": "number", "exclusiveMinimum": 10}, ("10.5",), ("10", "9.99")),
    ("number from 2 to 6", {"type": "number", "minimum": 2, "maximum": 6}, ("6",), ("6.4", "1.9")),
    ("number from -3 to 3", {"type": "number", "minimum": -3, "maximum": 3}, ("-0.25", "3"), ("30",)),
)


def pathologies() -> tuple[Instance, ...]:
    """The whole set."""
    return (*_lengths(), *_repeats(), *_recursion(), _tools(), *_enums(), *_letters(), *_bounds(), _blanks())


def _lengths() -> tuple[Instance, ...]:
    long = {"type": "string", "maxLength": 8000}
    least = {"type": "string", "minLength": 2000, "maxLength": 2100}
    return (
        _json("maxLength 8000", long, ["a b" * 200], ["a" * 8001]),
        _json("minLength 2000", least, ["ab" * 1000], ["ab" * 999, "ab" * 1051]),
        _json("40 strings of maxLength 500", _many(40, 500), [{f"p{i}": "x" * 9 for i in range(40)}], [{"p0": "x"}]),
    )


def _many(strings: int, longest: int) -> dict[str, object]:
    names = [f"p{i}" for i in range(strings)]
    string = {"type": "string", "maxLength": longest}
    return {
        "type": "object",
        "properties": dict.fromkeys(names, string),
        "required": names,
        "additionalProperties": False,
    }


def _repeats() -> tuple[Instance, ...]:
    """Bounds on both sides of 128, and beyond."""
    found = [_instance("repeat [a-z]{1,2000}", Regex("[a-z]{1,2000}"), ["a", "a" * 2000], ["", "a" * 2001])]
    for most in (128, 129, 2000):
        schema = {"type": "string", "pattern": f"^[^;]{{1,{most}}}$"}
        found.append(_json(f"pattern [^;]{{1,{most}}}", schema, ["a", "a" * most], ["", "a" * (most + 1), "a;"]))
    return (*found, _instance("repeat of repeats", Regex("([a-z]{1,40},){1,60}"), ["ab," * 60], ["ab," * 61]))


def _recursion() -> tuple[Instance, ...]:
    brackets = Grammar('root ::= "(" root ")" | [a-z]{1,3}')
    nested: object = {"v": 1}
    for i in range(DEEP):
        nested = {"v": i, "next": nested}
    return (
        _json(f"a schema within itself, {DEEP} deep", TREE, [nested], [{"v": 1, "next": {"v": "x"}}]),
        _instance("brackets, 200 deep", brackets, ["(" * 200 + "a" + ")" * 200], ["(" * 200 + "a" + ")" * 199]),
    )


def _tools() -> Instance:
    tools = [_tool(i) for i in range(TOOLS)]
    last = {"name": f"tool_{TOOLS - 1}", "arguments": {"query": "weather", "limit": 3}}
    wrong = {"name": "tool_999", "arguments": {"query": "weather", "limit": 3}}
    return _json(f"{TOOLS} tools in one union", {"anyOf": tools}, [last], [wrong])


def _tool(number: int) -> dict[str, object]:
    arguments = {
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["query", "limit"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"name": {"const": f"tool_{number}"}, "arguments": arguments},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _enums() -> tuple[Instance, ...]:
    values = [f"value-{i:05d}-{i * 7919 % 10007}" for i in range(5000)]
    return (
        _json("an enum of 5,000", {"enum": values}, [values[0], values[-1]], ["value-99999-1"]),
        _instance("5,000 labels", Labels(tuple(values)), [values[17]], ["value-"]),
    )


def _letters() -> tuple[Instance, ...]:
    wide = "[\u00c0-\u024f\u0370-\u03ff\u0400-\u04ff\u4e00-\u9fff]{1,60}"
    tones = {"enum": ["très bien", "悪い", "👍"]}
    return (
        _instance("letters of four scripts", Regex(wide), ["éλж悪" * 10], ["abc", "é" * 61]),
        _json("a pattern of letters of four scripts", {"type": "string", "pattern": f"^{wide}$"}, ["éλж悪"], ["abc"]),
        _json("an enum beyond ASCII", tones, ["悪い", "👍"], ["悪"]),
    )


def _bounds() -> tuple[Instance, ...]:
    """`-0` is valid JSON and equals 0."""
    return tuple(
        _instance(f"bounds: {name}", json_schema(schema, "compact"), said, refused)
        for name, schema, said, refused in BOUNDS
    )


def _blanks() -> Instance:
    """A text that goes on with white space must not be allowed to do so for ever."""
    schema = {"type": "object", "properties": {"label": {"enum": ["a", "b"]}}, "required": ["label"]}
    endless = '{"label": "a"' + "\n \n" * 16 + "}"
    return _instance("white space without end", json_schema(schema), ['{"label": "a"}'], [endless])


def _json(
    name: str, schema: object, said: Sequence[object], refused: Sequence[object], whitespace: Whitespace = "flexible"
) -> Instance:
    texts = [[json.dumps(value, ensure_ascii=False) for value in values] for values in (said, refused)]
    return _instance(name, json_schema(schema, whitespace), *texts)


def _instance(name: str, constraint: Constraint, said: Sequence[str], refused: Sequence[str]) -> Instance:
    cases = [Case(text, True) for text in said] + [Case(text, False) for text in refused]
    return Instance(name, constraint, tuple(cases), Budget())
