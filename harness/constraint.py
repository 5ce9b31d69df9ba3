"""What may be said, and the oracle that judges whether a text says it.

The oracle uses no mask engine: Python's full match for regexes (with ASCII classes, so that `\\d` is `[0-9]` for every
method), equality for labels, two independent validators for JSON Schema, a recogniser of its own for grammars.
"""

import json
import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from harness.errors import ConstraintError

Whitespace = Literal["compact", "flexible"]


class Labels(msgspec.Struct, frozen=True, tag="labels", tag_field="kind", forbid_unknown_fields=True):
    """Exactly one of these texts."""

    labels: tuple[str, ...]


class Regex(msgspec.Struct, frozen=True, tag="regex", tag_field="kind", forbid_unknown_fields=True):
    """A text that `pattern` matches as a whole, with Python's meaning and ASCII classes. Anchors at both ends change
    nothing. Engines take the subset described in `harness.regexes`."""

    pattern: str


class JsonSchema(msgspec.Struct, frozen=True, tag="json_schema", tag_field="kind", forbid_unknown_fields=True):
    """One JSON value that meets `schema` (JSON text, characters unescaped; see `json_schema`).

    `whitespace` is what engines may put between JSON tokens: `compact` none, `flexible` a bounded amount. The oracle
    takes any JSON whitespace, so that an unconstrained answer is not called invalid for it.
    """

    schema: str
    whitespace: Whitespace = "flexible"


class Grammar(msgspec.Struct, frozen=True, tag="grammar", tag_field="kind", forbid_unknown_fields=True):
    """A text derived from the rule `root` of an EBNF grammar in the notation `root ::= ...` (GBNF), which is what
    SGLang's `ebnf` takes; `harness.grammar` describes the subset."""

    ebnf: str


Constraint = Labels | Regex | JsonSchema | Grammar


class Verdict(msgspec.Struct, frozen=True):
    """What the oracle says of a text. `reason` is empty when it is accepted. `disagreement` says how two validators of
    JSON Schema differ (the text is then not accepted); `unchecked` names formats that no validator checks."""

    accepted: bool
    reason: str = ""
    disagreement: str = ""
    unchecked: tuple[str, ...] = ()


def json_schema(schema: object, whitespace: Whitespace = "flexible") -> JsonSchema:
    """A JSON-schema constraint from a parsed schema. Non-ASCII characters stay as they are, so that no engine makes the
    model spell them as escapes."""
    return JsonSchema(json.dumps(schema, ensure_ascii=False), whitespace)


def judge(constraint: Constraint, text: str) -> Verdict:
    """Whether `text` as a whole is what `constraint` asks for."""
    match constraint:
        case Labels(labels=labels):
            return Verdict(True) if text in labels else Verdict(False, f"{text!r} is not one of the labels")
        case Regex(pattern=pattern):
            matched = re.fullmatch(pattern, text, re.ASCII) is not None
            return Verdict(True) if matched else Verdict(False, f"the pattern does not match {text!r} as a whole")
        case JsonSchema(schema=schema):
            from harness.json_validity import judge_json

            return judge_json(schema, text)
        case Grammar(ebnf=ebnf):
            from harness.grammar import derives

            return Verdict(True) if derives(ebnf, text) else Verdict(False, f"the grammar does not derive {text!r}")


def accepts(constraint: Constraint, text: str) -> bool:
    """Whether `text` as a whole is what `constraint` asks for."""
    return judge(constraint, text).accepted


def check(constraint: Constraint) -> None:
    """Raise `ConstraintError` for a constraint that cannot be read, or that no text can meet."""
    match constraint:
        case Labels(labels=labels):
            _check_labels(labels)
        case Regex(pattern=pattern):
            _check_regex(pattern)
        case JsonSchema(schema=schema):
            from harness.json_validity import check_schema

            check_schema(schema)
        case Grammar(ebnf=ebnf):
            from harness.grammar import parse

            parse(ebnf)


def is_trivial(constraint: Constraint) -> bool:
    """Whether every JSON value meets the constraint (the schema `{}` or `true`): it is then reported as no
    constraint."""
    return isinstance(constraint, JsonSchema) and json.loads(constraint.schema) in ({}, True)


def labels_pattern(labels: Sequence[str]) -> str:
    """A regex that matches exactly `labels`, escaped in a way that every grammar parser takes: a space stays a space,
    a line break becomes `\\n`. Longer labels come first, so that the order of `labels` never matters."""
    unique = sorted(set(labels), key=lambda label: (-len(label), label))
    return "(" + "|".join(escape(label) for label in unique) + ")"


def escape(text: str) -> str:
    """`text` as a regex that matches it alone."""
    return "".join(_ESCAPES.get(character, character) for character in text)


_ESCAPES = {c: "\\" + c for c in r"\.^$*+?{}[]|()/-"} | {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_ESCAPES.pop("-")
_ESCAPES.pop("/")


def _check_labels(labels: tuple[str, ...]) -> None:
    if not labels:
        raise ConstraintError("labels: the list is empty", "at least one label", "name the labels of the task")
    bare = [label.strip() for label in labels]
    if empty := [label for label, stripped in zip(labels, bare, strict=True) if not stripped]:
        raise ConstraintError(f"labels: {empty[0]!r} is empty", "labels with text", "remove it or give it a name")
    if doubled := sorted({label for label in bare if bare.count(label) > 1}):
        raise ConstraintError(
            f"labels: {doubled[0]!r} stands more than once (white space at the ends does not count)",
            "labels that differ after stripping",
            "remove or rename the duplicates",
        )
    if padded := [label for label, stripped in zip(labels, bare, strict=True) if label != stripped]:
        raise ConstraintError(
            f"labels: {padded[0]!r} begins or ends with white space",
            "labels without white space at their ends (answers are stripped before they are compared)",
            f"write {padded[0].strip()!r}",
        )


def _check_regex(pattern: str) -> None:
    if not pattern:
        raise ConstraintError("regex: the pattern is empty", "a pattern", "write one, or use no constraint")
    try:
        re.compile(pattern, re.ASCII)
    except re.error as error:
        raise ConstraintError(f"regex: {pattern!r} is not a regex: {error}", "Python's syntax", "mend it") from None
