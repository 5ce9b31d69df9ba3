"""lm-format-enforcer behind the mask contract: the library's own answers, for less; what it cannot express said before.

What all engines promise is tested in `tests/contract/test_engines.py`.
"""

import gc
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from lmformatenforcer import CharacterLevelParser

from benchmarks.lm_format_enforcer_speed import Here, Library, Row, digests, read, whole
from harness.constraint import Constraint, Grammar, JsonSchema, Labels, Regex, accepts, json_schema
from harness.errors import Unsupported
from harness.mask import Automaton, allowed, allows
from harness.masks.lm_format_enforcer import ENGINE, parser_engine
from harness.masks.lm_format_enforcer.letters import LETTER_BYTES
from harness.masks.lm_format_enforcer.machine import Machine
from harness.masks.lm_format_enforcer.parsers import parser
from harness.masks.lm_format_enforcer.table import Table
from harness.vocabulary import Vocabulary
from tests.contract.walking import a_vocabulary, compiled, may, says

DATA = Path(
    os.environ.get("MASKBENCH_SAMPLE", Path(__file__).parents[2] / "shared/data/maskbench_sample/schemas.jsonl")
)
SLOW = HealthCheck.too_slow
SCHEMAS, TOKENS = 60, 50
"""How much of the sample the test walks; `benchmarks/lm_format_enforcer_speed.py` walks it whole."""


@pytest.mark.skipif(not DATA.is_file(), reason=f"no MaskBench sample at {DATA}; MASKBENCH_SAMPLE names another place")
def test_on_maskbench_instances_the_tokens_are_the_plain_librarys() -> None:
    """Valid instances of real schemas, on the default model's vocabulary, each up to its first rejected token."""
    from tokenizers import Tokenizer

    from harness.deployments.embedded.weights import default_weights

    known = a_vocabulary("smollm2")
    library, here, kept = Library(known), Here(known), whole(known)
    rows = read(DATA, Tokenizer.from_file(str(default_weights() / "tokenizer.json")), known.stop_ids[0])
    compared = 0
    for row in rows[:: max(1, len(rows) // SCHEMAS)]:
        short = Row(row.id, row.schema, [row.instances[0][:TOKENS]])
        try:
            ours = digests(here, short, kept)
        except Unsupported:
            continue
        assert ours == digests(library, short, kept), row.id
        compared += len(ours[0])
    assert compared > 1000


NAMES = st.sampled_from(["a", "ab", "a b", "é", "id"])
WORDS = st.lists(st.sampled_from(["no", "no no", "not", "été", "x  y", " x", "", "id"]), min_size=1, unique=True)
PATTERNS = ["^[a-z]+$", r"\w{1,3}-\d", "[^;]{1,40}", r"\s*x", "(ab|a)( b)?", "[0-9a-f]{4}", ".*"]
LEAVES: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.sampled_from(["string", "integer", "number", "boolean", "null", "object"]).map(lambda kind: {"type": kind}),
    st.tuples(st.integers(0, 4), st.integers(4, 30)).map(
        lambda drawn: {"type": "string", "minLength": drawn[0], "maxLength": drawn[1]}
    ),
    st.integers(1, 9).map(lambda least: {"type": "string", "minLength": least}),
    WORDS.map(lambda words: {"enum": words}),
    st.sampled_from(PATTERNS).map(lambda pattern: {"type": "string", "pattern": pattern}),
    st.sampled_from([{"const": "yes no"}, {"enum": [1, 12, 3.5]}, {"type": ["string", "null"]}, {"$ref": "#/$defs/n"}]),
)


def _larger(part: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    bounds = st.sampled_from([{}, {"minItems": 1}, {"maxItems": 2}, {"minItems": 1, "maxItems": 3}])
    properties = st.dictionaries(NAMES, part, min_size=1, max_size=3)
    required = st.lists(NAMES, unique=True, max_size=2)
    return st.one_of(
        st.tuples(properties, required).map(
            lambda drawn: {"type": "object", "properties": drawn[0], "required": [n for n in drawn[1] if n in drawn[0]]}
        ),
        st.tuples(part, required).map(
            lambda drawn: {"type": "object", "additionalProperties": drawn[0], "required": drawn[1]}
        ),
        st.tuples(part, bounds).map(lambda drawn: {"type": "array", "items": drawn[0], **drawn[1]}),
        st.lists(part, min_size=2, max_size=3).map(lambda parts: {"anyOf": parts}),
    )


NODE = {"type": "object", "properties": {"v": {"type": "integer"}, "n": {"$ref": "#/$defs/n"}}, "required": ["v"]}


@settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=[SLOW])
@given(schema=st.recursive(LEAVES, _larger, max_leaves=5), seed=st.integers(0, 999))
def test_on_random_schemas_and_walks_the_tokens_are_the_plain_librarys(schema: dict[str, Any], seed: int) -> None:
    known = a_vocabulary("byte_level")
    schema = {**schema, "$defs": {"n": NODE}}
    automaton = compiled("lm_format_enforcer", "byte_level", json_schema(schema))
    assume(automaton is not None)
    assert automaton is not None
    library, random, said = Library(known), Random(seed), list[int]()
    enforcer, matcher = library.compile(schema), automaton.matcher()
    letters = {i for i, one in enumerate(whole(known)) if one}
    for _ in range(40):
        now = may(matcher, known) & letters
        assert now == set(enforcer.get_allowed_tokens(said).allowed_tokens) or not now, known.text(said)
        if not (texts := sorted(now - set(known.stop_ids))):
            break
        ending = [i for i in texts if (known.tokens[i] or b"") in (b'"', b"}", b"]", b",", b":", b"{")]
        said.append(random.choice(ending if ending and random.random() < 0.5 else texts))
        matcher.advance(said[-1])


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "object", "properties": {"a": {}}}, "$.a: Unsupported type None"),
        ({"type": "object", "properties": {"a": {"type": "array", "items": {"enum": [1, None]}}}}, "$.a[]"),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]}, "'b' is required"),
        ({"type": "object", "additionalProperties": {"$ref": "#/$defs/none"}}, "No definitions"),
        ({"type": "string", "maxLength": 0}, "strings of 0 to 0"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "strings of 3 to 2"),
        ({"type": "string", "pattern": "a", "minLength": 1}, "both a pattern and a min/max length"),
        ({"type": "string", "pattern": r"\bcat\b"}, "Escape \\b"),
        ({"enum": ['say "hi"', "no"]}, "escape"),
        ({"type": "object", "properties": {"a\\b": {"type": "null"}}}, "escape"),
        ({"const": 5}, "5 among strings"),
    ],
)
def test_what_the_library_would_fail_on_on_the_way_is_unsupported(schema: dict[str, Any], reason: str) -> None:
    """The library reads a part of a schema when the text gets there, and lets the text end where it cannot."""
    with pytest.raises(Unsupported) as raised:
        ENGINE.compiler(a_vocabulary("byte_level")).compile(json_schema(schema))
    assert reason in raised.value.reason


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "number"}, "1.e5"),
        ({"type": "integer"}, "1e-5"),
        ({"type": "string", "maxLength": 2}, '"   ab"'),
        ({"type": "string", "pattern": "[^;]+"}, '"a\nb"'),
        ({"type": "integer", "minimum": 3}, "1"),
        ({"type": "string", "format": "date"}, '"x"'),
        ({"type": "object", "additionalProperties": False}, '{"a":1}'),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, '{"a":1}'),
    ],
)
def test_what_the_library_lets_through_wrongly_is_not_mended_here(schema: dict[str, Any], text: str) -> None:
    """An engine is measured as it is. One of these faults that is gone in another version fails here."""
    assert says(_compiled(json_schema(schema, "compact")), a_vocabulary("byte_level"), text)
    assert not accepts(json_schema(schema), text)


@pytest.mark.parametrize("constraint", [Grammar('root ::= "a"'), Regex("(?=a)a"), json_schema({"enum": [[1], 2]})])
def test_other_things_it_does_not_have_are_unsupported(constraint: Constraint) -> None:
    assert compiled("lm_format_enforcer", "byte_level", constraint) is None


def test_schemas_that_say_self_work() -> None:
    """The library's class takes a schema's keywords as arguments, and fails on one called self."""
    inner = {"type": "object", "properties": {"self": {"type": "null"}}, "self": {"vendor": "x"}, "required": ["self"]}
    schema = {"self": {"name": "event"}, "anyOf": [inner], "enum": []}
    automaton = _compiled(json_schema(schema, "compact"))
    assert says(automaton, a_vocabulary("byte_level"), '{"self":null}')
    assert not says(automaton, a_vocabulary("byte_level"), "{}")


def test_compact_means_no_white_space_between_tokens_and_any_within_strings() -> None:
    """The library's own setting for this would take the spaces out of enumerated strings too."""
    known = a_vocabulary("byte_level")
    properties = {"a": {"enum": ["très bien"]}, "b": {"type": "string", "pattern": "x y"}, "c": {"type": "string"}}
    automaton = _compiled(json_schema({"type": "object", "properties": properties}, "compact"))
    assert says(automaton, known, '{"a":"très bien","b":"x y","c":" 1  2 "}')
    for text in ('{ "a":"très bien"}', '{"a" :"très bien"}', '{"a": "très bien"}', '{"c":"" }', '{"c":""} '):
        assert not says(automaton, known, text)


def test_in_a_string_only_bytes_of_real_characters_follow() -> None:
    """The library lets any piece of a character stand in a string, also where no character has such bytes."""
    known = a_vocabulary("byte_level")
    automaton = _compiled(json_schema({"type": "string", "maxLength": 2}))
    matcher = automaton.matcher()
    matcher.advance(_token(known, b'"'))
    assert {byte for byte in range(0x80, 0x100) if _token(known, bytes([byte])) in may(matcher, known)} == {
        *range(0xC2, 0xF5)
    }
    for byte in "悪".encode()[:2]:
        matcher.advance(_token(known, bytes([byte])))
    assert {(known.tokens[i] or b"")[0] for i in may(matcher, known)} == {*range(0x80, 0xC0)}
    assert says(automaton, known, '"悪😀"')
    assert not says(automaton, known, '"悪😀x"')


def test_a_token_that_the_mask_does_not_allow_is_an_error_where_the_librarys_parser_would_take_it() -> None:
    """In a string the library decides by whole tokens, and its parser takes some that it does not allow."""
    known = a_vocabulary("byte_level")
    matcher = _compiled(json_schema({"type": "string"})).matcher()
    matcher.advance(_token(known, b'"'))
    assert _token(known, b"\n") not in may(matcher, known)
    with pytest.raises(ValueError):
        matcher.advance(_token(known, b"\n"))


def test_patterns_know_the_characters_of_their_own_vocabulary() -> None:
    """The library keeps one table of patterns for all schemas and tokenizers of a process."""
    ascii_only = Vocabulary((*(bytes([byte]) for byte in range(0x20, 0x7F)), None), (95,), 96)
    constraint = json_schema({"type": "string", "pattern": "[^;]+"}, "compact")
    assert says(ENGINE.compiler(ascii_only).compile(constraint), ascii_only, '"ab"')
    assert says(_compiled(constraint), a_vocabulary("byte_level"), '"aé悪"')
    assert not says(_compiled(constraint), a_vocabulary("byte_level"), '"a;"')


def test_environment_variables_of_the_library_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMFE_MAX_CONSECUTIVE_WHITESPACES", "0")
    monkeypatch.setenv("LMFE_MAX_JSON_ARRAY_LENGTH", "1")
    monkeypatch.setenv("LMFE_STRICT_JSON_FIELD_ORDER", "true")
    properties = {"a": {"type": "integer"}, "b": {"type": "array", "items": {"type": "null"}}}
    schema = json_schema({"type": "object", "properties": properties, "required": ["a", "b"]})
    assert says(_compiled(schema), a_vocabulary("byte_level"), '{ "b": [null, null], "a": 1}')


@pytest.mark.parametrize("limit_bytes", [0, 10_000, 30_000])
def test_masks_are_the_same_however_little_may_be_remembered(limit_bytes: int) -> None:
    known = a_vocabulary("byte_level")
    constraint = json_schema({"type": "object", "additionalProperties": NODE, "$defs": {"n": NODE}})
    small, large = Table(known, limit_bytes), Table(known)
    narrow, wide = (Machine(table, *_start(constraint, table), True) for table in (small, large))
    assert [_walk(narrow, known, seed) for seed in range(8)] == [_walk(wide, known, seed) for seed in range(8)]
    assert small.memory.total_bytes <= limit_bytes < large.memory.total_bytes


def test_what_classes_of_many_letters_take_is_counted_too() -> None:
    known = a_vocabulary("byte_level")
    counted = {}
    for name, letters in (("narrow", "a-d"), ("wide", "\u4e00-\u9fff")):
        table = Table(known)
        start, alphabet = parser(Regex(f"[x{letters}]{{1,2}}y[{letters}]"), table.alphabet)
        machine = Machine(table, alphabet, start, True)
        assert machine.take(machine.start(), b"", known.tokens.index(b"x"), "x", b"") is not None
        counted[name] = table.memory.total_bytes
    assert counted["wide"] > counted["narrow"] + 20_000 * LETTER_BYTES


def test_an_automaton_that_nobody_holds_gives_its_memory_back_at_once() -> None:
    table = Table(a_vocabulary("byte_level"))
    constraint = json_schema({"type": "object"})
    gc.disable()
    try:
        machine = Machine(table, *_start(constraint, table), True)
        _walk(machine, table.vocabulary, 1)
        held = table.memory.total_bytes
        del machine
        assert held > table.memory.total_bytes == 0
    finally:
        gc.enable()


class Balanced(CharacterLevelParser):  # type: ignore[misc]  # the library is not typed
    """A parser as a user writes it: brackets that match, then a full stop. With `named` it has cache keys."""

    def __init__(self, named: bool, depth: int = 0, ended: bool = False) -> None:
        super().__init__()
        self._named, self._depth, self._ended = named, depth, ended

    def get_allowed_characters(self) -> str:
        return "" if self._ended else "(" + (")" if self._depth else ".")

    def add_character(self, new_character: str) -> CharacterLevelParser:
        return Balanced(self._named, self._depth + {"(": 1, ")": -1, ".": 0}[new_character], new_character == ".")

    def can_end(self) -> bool:
        return self._ended

    def cache_key(self) -> object:
        return (self._depth, self._ended) if self._named else None


@pytest.mark.parametrize("named", [False, True])
def test_a_users_own_parser_is_an_engine_with_and_without_cache_keys(named: bool) -> None:
    known = a_vocabulary("byte_level")
    automaton = parser_engine("balanced", lambda constraint: Balanced(named)).compiler(known).compile(Labels(("x",)))
    for _ in range(2):
        assert says(automaton, known, "(()())().")
        assert not says(automaton, known, "(()")
        assert not says(automaton, known, "())")


def _compiled(constraint: Constraint) -> Automaton:
    automaton = compiled("lm_format_enforcer", "byte_level", constraint)
    assert automaton is not None
    return automaton


def _start(constraint: JsonSchema, table: Table) -> tuple[str, CharacterLevelParser]:
    start, alphabet = parser(constraint, table.alphabet)
    return alphabet, start


def _walk(machine: Machine, known: Vocabulary, seed: int) -> list[list[int]]:
    """The tokens allowed at each step of one random walk over whole characters."""
    random, state, steps = Random(seed), machine.start(), list[list[int]]()
    for _ in range(25):
        mask = machine.mask(state, b"")
        steps.append(allowed(mask, known.width).tolist())
        texts = [i for i in steps[-1] if (known.tokens[i] or b"").isascii()]
        if not texts:
            break
        token = random.choice(texts)
        assert allows(mask, token)
        following = machine.take(state, b"", token, (known.tokens[token] or b"").decode(), b"")
        assert following is not None
        state = following
    return steps


def _token(known: Vocabulary, spelling: bytes) -> int:
    return known.tokens.index(spelling)
