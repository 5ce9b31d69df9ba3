"""What every mask engine promises, whatever library does the work. Random constraints, random walks, real libraries."""

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.constraint import (
    Constraint,
    Grammar,
    JsonSchema,
    Labels,
    Regex,
    accepts,
    json_schema,
    judge,
)
from harness.errors import Unsupported
from harness.mask import Automaton, Matcher
from harness.masks import engine
from harness.vocabulary import Vocabulary
from tests.contract.drawn import grammars, labels, regexes, schemas
from tests.contract.walking import a_vocabulary, compiled, compiler, may, says, takes, walk

EXAMPLES = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

FAULTS = {"lm_format_enforcer": ("Invalid control character", "delimiter", "Extra data")}
"""What random walks find wrong with a library, in the words of the oracle: it lets JSON strings hold control
characters, and an exponent follow a decimal point at once (both in the list of known faults below)."""

BRACKETS = Grammar('root ::= "(" root ")" | [a-z]{1,3} | ""')
SCHEMA = json_schema(
    {
        "type": "object",
        "properties": {"tone": {"enum": ["très bien", "悪い", "👍"]}, "n": {"type": "integer"}},
        "required": ["tone"],
        "additionalProperties": False,
    }
)
ONE_OF_EACH: list[Constraint] = [Labels(("no", "no evidence")), Regex(r"[a-c]{1,3}(é|😀)?"), SCHEMA, BRACKETS]


@pytest.mark.parametrize("constraint", ONE_OF_EACH, ids=lambda c: type(c).__name__)
def test_padding_special_tokens_and_early_stops_are_never_allowed(
    engine_name: str, vocabulary_name: str, constraint: Constraint
) -> None:
    known = a_vocabulary(vocabulary_name)
    if (automaton := compiled(engine_name, vocabulary_name, constraint)) is None:
        pytest.skip("not supported")
    matcher, random, ids = automaton.matcher(), Random(3), list[int]()
    for _ in range(20):
        now = may(matcher, known)
        spelt = now - set(known.stop_ids)
        assert all(i < len(known.tokens) and known.tokens[i] for i in spelt)
        assert (set(known.stop_ids) & now) == (set(known.stop_ids) if accepts(constraint, known.text(ids)) else set())
        if not spelt:
            break
        ids.append(random.choice(sorted(spelt)))
        matcher.advance(ids[-1])


@EXAMPLES
@given(constraint=regexes(), seed=st.integers(0, 999))
def test_regexes_mean_the_same_to_every_engine(
    engine_name: str, vocabulary_name: str, constraint: Regex, seed: int
) -> None:
    _same_as_the_reference(engine_name, vocabulary_name, constraint, seed)


@EXAMPLES
@given(constraint=labels(), seed=st.integers(0, 999))
def test_labels_mean_the_same_to_every_engine(
    engine_name: str, vocabulary_name: str, constraint: Labels, seed: int
) -> None:
    _same_as_the_reference(engine_name, vocabulary_name, constraint, seed)


@EXAMPLES
@given(constraint=grammars(), seed=st.integers(0, 999))
def test_grammars_mean_the_same_to_every_engine_that_has_them(
    engine_name: str, vocabulary_name: str, constraint: Grammar, seed: int
) -> None:
    _same_as_the_reference(engine_name, vocabulary_name, constraint, seed)


@EXAMPLES
@given(constraint=st.one_of(regexes(), labels(), grammars(), schemas()), seed=st.integers(0, 999))
def test_whatever_the_masks_let_end_the_oracle_accepts(
    engine_name: str, vocabulary_name: str, constraint: Constraint, seed: int
) -> None:
    known = a_vocabulary(vocabulary_name)
    if (automaton := compiled(engine_name, vocabulary_name, constraint)) is None:
        return
    if (ids := walk(automaton, known, seed)) is not None:
        reason = judge(constraint, known.text(ids)).reason
        assert not reason or any(fault in reason for fault in FAULTS.get(engine_name, ()))


@EXAMPLES
@given(constraint=schemas(), seed=st.integers(0, 999))
def test_white_space_between_json_tokens_is_bounded_or_none(
    engine_name: str, vocabulary_name: str, constraint: JsonSchema, seed: int
) -> None:
    known = a_vocabulary(vocabulary_name)
    automaton = compiled(engine_name, vocabulary_name, constraint)
    if automaton is None or (ids := walk(automaton, known, seed)) is None:
        return
    assert _longest_gap(known.text(ids)) <= (0 if constraint.whitespace == "compact" else 12)


def test_every_label_can_be_said_and_nothing_else(engine_name: str, vocabulary_name: str) -> None:
    """BC-01."""
    said = ("C++", "C#", "v1.0", "x|y", "(none)", "50%", "[O]", "\\d", "a-b", "two words", 'say "hi"')
    said += ("line\nbreak", "tab\there", "悪い", "👍")
    refused = ("C", "C+++", "v1x0", "x", "y", "none", "O", "7", "aXb", "twowords", "linebreak", "")
    known, automaton = _supported(engine_name, vocabulary_name, Labels(said))
    assert [label for label in said if not says(automaton, known, label)] == []
    assert [text for text in refused if says(automaton, known, text)] == []


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_a_label_that_begins_another_may_end_or_go_on(
    engine_name: str, vocabulary_name: str, order: tuple[int, ...]
) -> None:
    """BC-02."""
    names = ("no", "no evidence", "no evidence found")
    known, automaton = _supported(engine_name, vocabulary_name, Labels(tuple(names[i] for i in order)))
    matcher = automaton.matcher()
    for byte in b"no":
        matcher.advance(_token(known, bytes([byte])))
    now = may(matcher, known)
    assert set(known.stop_ids) <= now
    assert _token(known, b" ") in now
    assert all(says(automaton, known, name) for name in names)


def test_a_token_with_a_leading_space_is_not_the_word(engine_name: str) -> None:
    """BC-05: the pieces of a sentencepiece tokenizer, U+2581 read as a space."""
    pieces = {5: b" yes", 6: b"yes", 7: b" ", 8: b" no", 9: b"no", 10: b" maybe", 11: b"maybe"}
    letters = [bytes([byte]) for byte in range(0x30, 0x7B)]
    known = Vocabulary((*(pieces.get(i) for i in range(12)), *letters), (2,), 100)
    here = engine(engine_name).compiler(known)
    start = may(here.compile(Regex("(yes|no)")).matcher(), known)
    assert {6, 9} <= start
    assert not start & {5, 7, 8}
    matcher = here.compile(Regex("[a-z]{2,8} [0-9]{2}")).matcher()
    for piece in (b"maybe", b" ", b"1", b"2"):
        matcher.advance(known.tokens.index(piece))
    assert may(matcher, known) == {2}


@pytest.mark.parametrize(
    ("pattern", "said", "refused"),
    [
        ("^(yes|no)$", ["yes", "no"], ["maybe", ""]),
        ("(?!no)[a-z]+", ["yes"], ["nope"]),
        (r"(?=.*\d)[a-z0-9]{4}", ["ab1c"], ["abcd"]),
        (r"\bcat\b", ["cat"], ["cats"]),
        (r"[0-9]+(\.[0-9]+)?", ["1", "1.5"], ["1.", ".5"]),
        ("(a|ab)(c|bcd)", ["ac", "abc", "abcd", "abbcd"], ["ab", "a"]),
    ],
)
def test_a_pattern_is_enforced_or_unsupported(
    engine_name: str, pattern: str, said: list[str], refused: list[str]
) -> None:
    """BC-07."""
    if (automaton := compiled(engine_name, "byte_level", Regex(pattern))) is None:
        assert "(?" in pattern or r"\b" in pattern
        return
    known = a_vocabulary("byte_level")
    assert all(says(automaton, known, text) for text in said)
    assert not any(says(automaton, known, text) for text in refused)


def test_large_repeats_hold_at_their_bounds(engine_name: str) -> None:
    """BC-09."""
    known, automaton = _supported(engine_name, "byte_level", Regex("[a-z]{1,2000}"))
    letter, matcher = _token(known, b"a"), automaton.matcher()
    assert not set(known.stop_ids) & may(matcher, known)
    for _ in range(2000):
        matcher.advance(letter)
    assert may(matcher, known) == set(known.stop_ids)


@pytest.mark.parametrize("most", [128, 129, 2000])
def test_large_repeats_in_json_patterns_end_nothing_but_the_compilation(engine_name: str, most: int) -> None:
    """BC-09: in one library 129 ended the process."""
    schema = json_schema({"type": "string", "pattern": f"^[^;]{{1,{most}}}$"}, "compact")
    known = a_vocabulary("byte_level")
    if (automaton := compiled(engine_name, "byte_level", schema)) is not None:
        assert takes(automaton, known, '"' + "a" * most + '"')
        assert not takes(automaton, known, '"' + "a" * (most + 1) + '"')


def test_characters_beyond_ascii_are_said_as_they_are(engine_name: str, vocabulary_name: str) -> None:
    """BC-11."""
    known, automaton = _supported(engine_name, vocabulary_name, SCHEMA)
    assert says(automaton, known, '{"tone":"悪い"}')
    assert says(automaton, known, '{"tone": "👍", "n": 12}')


def test_a_disallowed_token_is_an_error_and_changes_nothing(engine_name: str, vocabulary_name: str) -> None:
    known, automaton = _supported(engine_name, vocabulary_name, Labels(("abc", "悪い")))
    matcher = automaton.matcher()
    matcher.advance(_token(known, b"a"))
    before = may(matcher, known)
    wrong = [i for i in range(known.width) if i not in before]
    for token in (*wrong[:20], *wrong[-20:], _token(known, b"a"), *known.stop_ids):
        with pytest.raises(ValueError):
            matcher.advance(token)
    assert may(matcher, known) == before
    assert not matcher.finished()


def test_after_the_stop_token_only_stop_tokens_follow(engine_name: str, vocabulary_name: str) -> None:
    known, automaton = _supported(engine_name, vocabulary_name, Regex("a{1,3}"))
    matcher = automaton.matcher()
    matcher.advance(_token(known, b"a"))
    matcher.advance(known.stop_ids[-1])
    assert matcher.finished()
    assert may(matcher, known) == set(known.stop_ids)
    with pytest.raises(ValueError):
        matcher.advance(_token(known, b"a"))


def test_a_text_that_leads_an_engine_to_its_limits_is_unsupported_and_not_wrong() -> None:
    """This grammar can read a row of letters in more ways than the reference follows."""
    known, automaton = _supported("reference", "byte_level", Grammar('root ::= ([ab]{1,20} root?){1,40} "x"?'))
    with pytest.raises(Unsupported, match="ways to read the same text"):
        takes(automaton, known, "a" * 40)


@pytest.mark.parametrize("constraint", ONE_OF_EACH, ids=lambda c: type(c).__name__)
def test_many_matchers_of_one_automaton_do_not_disturb_each_other(engine_name: str, constraint: Constraint) -> None:
    """BC-36."""
    known = a_vocabulary("sentencepiece")
    if (automaton := compiled(engine_name, "sentencepiece", constraint)) is None:
        pytest.skip("not supported")
    alone = [_record(automaton.matcher(), known, seed) for seed in range(4)]
    together = [_record(automaton.matcher(), known, seed) for seed in range(4)]
    rows = [next(row) for _ in range(12) for row in together]
    assert rows == [next(row) for _ in range(12) for row in alone]
    fresh = _record(automaton.matcher(), known, 0)
    assert [next(fresh) for _ in range(12)] == rows[::4]


def test_two_tokenizers_in_one_process_keep_apart(engine_name: str) -> None:
    constraint = Regex("(yes|no) 悪い")
    pairs = [(a_vocabulary(name), compiled(engine_name, name, constraint)) for name in ("sentencepiece", "byte_level")]
    assert all(automaton is not None and says(automaton, known, "no 悪い") for known, automaton in pairs)


@pytest.mark.parametrize("constraint", ONE_OF_EACH, ids=lambda c: type(c).__name__)
def test_the_default_models_tokenizer_is_walked_like_the_reference_walks_it(
    engine_name: str, constraint: Constraint
) -> None:
    """The byte-level BPE of SmolLM2, 49,152 tokens, on which 👍 takes several tokens."""
    known = a_vocabulary("smollm2")
    if (automaton := compiled(engine_name, "smollm2", constraint)) is None:
        pytest.skip("not supported")
    if engine_name == "lm_format_enforcer" and isinstance(constraint, JsonSchema):
        pytest.skip("it takes properties in any order, the reference in that of the schema")
    reference = compiler("reference", "smollm2").compile(constraint).matcher()
    matcher, random = automaton.matcher(), Random(11)
    for _ in range(10):
        now, wanted = may(matcher, known), may(reference, known)
        assert now <= wanted if isinstance(constraint, JsonSchema) else now == wanted
        if not (texts := sorted(now - set(known.stop_ids))):
            break
        token = random.choice(texts)
        matcher.advance(token)
        reference.advance(token)


@pytest.mark.parametrize(
    ("library", "schema", "text"),
    [
        ("llguidance", {"type": "number", "exclusiveMinimum": 119, "maximum": 119.5}, "119"),
        ("llguidance", {"type": "object", "properties": {"a": {"type": "null"}}}, '{"\\u0061":1}'),
        ("llguidance", {"type": "string", "format": "date-time"}, '"2024-02-29T12:00:60Z"'),
        ("xgrammar", {"type": "object", "properties": {"a": {"type": "null"}}}, '{"\\u0061":1}'),
        ("xgrammar", {"type": "string", "maxLength": 3}, '"a\tb"'),
        ("xgrammar", {"type": "string"}, '"\\ud800"'),
        ("xgrammar", {"type": "string", "format": "date"}, '"2024-02-30"'),
        ("xgrammar", {"type": "string", "format": "ipv4"}, '"01.2.3.4"'),
        ("outlines", {"type": "string", "pattern": r"^\d+$"}, '"٤"'),
        ("outlines", {"type": "string", "format": "date"}, '"2024-02-30"'),
        ("outlines", {"type": "string", "format": "date-time"}, '"2024-02-29T12:00:00"'),
        ("lm_format_enforcer", {"type": "string"}, '"a\tb"'),
        ("lm_format_enforcer", {"type": "number"}, "0.e1"),
    ],
)
def test_what_a_library_is_known_to_allow_wrongly_the_oracle_refuses(
    library: str, schema: dict[str, object], text: str
) -> None:
    """Known faults of the versions in use; one that is gone fails here, and its line can go too."""
    constraint = json_schema(schema, "compact")
    known, automaton = _supported(library, "byte_level", constraint)
    assert says(automaton, known, text)
    assert not accepts(constraint, text)


@pytest.mark.parametrize(
    ("library", "schema", "text"),
    [
        ("xgrammar", {"type": "integer"}, "-0"),
        ("xgrammar", {"type": "integer", "minimum": -70}, "-0"),
        ("xgrammar", {"type": "number", "minimum": -3, "maximum": 3}, "-0"),
        ("llguidance", {"type": "integer", "minimum": -70}, "-0"),
        ("llguidance", {"type": "number", "minimum": -3, "maximum": 3}, "-0"),
        ("lm_format_enforcer", {"type": "integer"}, "1.0"),
        ("llguidance", {"type": "integer"}, "1.0"),
        ("outlines", {"type": "integer"}, "1.0"),
        ("outlines", {"type": "number"}, "1e2"),
        ("xgrammar", {"type": "number", "minimum": 0}, "1e2"),
        ("llguidance", {"type": "number", "minimum": 0}, "1e2"),
        ("llguidance", {"type": "string"}, '"\x7f"'),
        ("outlines", {"type": "object", "properties": {"a": {"$ref": "#"}}}, '{"a":' * 6 + "{}" + "}" * 6),
    ],
)
def test_what_a_library_is_known_to_refuse_wrongly_the_oracle_accepts(
    library: str, schema: dict[str, object], text: str
) -> None:
    """BC-12: rejects valid. It pushes a model to another answer; one that is gone fails here, and its line can go."""
    constraint = json_schema(schema, "compact")
    known, automaton = _supported(library, "byte_level", constraint)
    assert accepts(constraint, text)
    assert not says(automaton, known, text)


RECURSIVE = {"type": "object", "properties": {"a": {"$ref": "#"}}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("constraint", "before", "token"),
    [(BRACKETS, "(((a", b"))"), (json_schema(RECURSIVE, "compact"), '{"a":{"a":{', b"}}")],
)
def test_the_mask_of_one_library_is_known_to_forbid_tokens_that_close_two_levels_of_one_rule(
    constraint: Constraint, before: str, token: bytes
) -> None:
    """xgrammar: it takes such a token all the same, so a text that closes level by level can be said."""
    known = a_vocabulary("smollm2")
    found = {}
    for name in ("xgrammar", "llguidance", "reference"):
        matcher = compiler(name, "smollm2").compile(constraint).matcher()
        for byte in before.encode():
            matcher.advance(_token(known, bytes([byte])))
        found[name] = _token(known, token) in may(matcher, known)
        matcher.advance(_token(known, token))
    assert found == {"xgrammar": False, "llguidance": True, "reference": True}


@pytest.mark.parametrize(
    ("library", "schema"),
    [
        ("lm_format_enforcer", {"type": "integer"}),
        ("outlines", {"type": "integer"}),
        ("llguidance", {"type": "integer"}),
        ("xgrammar", {"type": "number"}),
        ("reference", {"type": "integer", "minimum": -70}),
        ("reference", {"type": "number", "minimum": -3, "maximum": 3}),
    ],
)
def test_zero_with_a_minus_is_a_number_to_the_others(library: str, schema: dict[str, object]) -> None:
    """BC-12."""
    known, automaton = _supported(library, "byte_level", json_schema(schema, "compact"))
    assert says(automaton, known, "-0")


def _supported(engine_name: str, vocabulary_name: str, constraint: Constraint) -> tuple[Vocabulary, Automaton]:
    automaton = compiled(engine_name, vocabulary_name, constraint)
    assert automaton is not None
    return a_vocabulary(vocabulary_name), automaton


def _token(known: Vocabulary, spelling: bytes) -> int:
    return known.tokens.index(spelling)


def _same_as_the_reference(engine_name: str, vocabulary_name: str, constraint: Constraint, seed: int) -> None:
    """The same tokens at every step of one random walk."""
    known = a_vocabulary(vocabulary_name)
    automaton = compiled(engine_name, vocabulary_name, constraint)
    if automaton is None:
        return
    matcher, reference = automaton.matcher(), compiler("reference", vocabulary_name).compile(constraint).matcher()
    random, ids = Random(seed), list[int]()
    for _ in range(20):
        now, wanted = may(matcher, known), may(reference, known)
        assert now == wanted, f"after {known.bytes_of(ids)!r}"
        if not (texts := sorted(now - set(known.stop_ids))):
            break
        ids.append(random.choice(texts))
        matcher.advance(ids[-1])
        reference.advance(ids[-1])


def _record(matcher: Matcher, known: Vocabulary, seed: int) -> Iterator[list[int]]:
    """What may follow at each step of one random walk."""
    random = Random(seed)
    while True:
        now = may(matcher, known)
        yield sorted(now)
        matcher.advance(random.choice(sorted(now)))


def _longest_gap(text: str) -> int:
    """The longest run of white space outside strings."""
    longest = run = 0
    inside = escaped = False
    for character in text:
        run = run + 1 if not inside and character in " \t\n\r" else 0
        longest = max(longest, run)
        inside ^= character == '"' and not escaped
        escaped = inside and character == "\\" and not escaped
    return longest
