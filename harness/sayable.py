"""Whether a model's tokens can spell what a constraint names.

A vocabulary need not have a token for every byte: what it cannot spell, no mask can let through. A label that cannot be
said would be wrong in every answer, and a mask that has come half way to it allows nothing.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from harness.constraint import Constraint, Grammar, JsonSchema, Labels, Regex
from harness.errors import ConstraintError, Unsupported
from harness.expression import Chars, Concat, Either, Expression, Repeat, Rule
from harness.grammar import parse
from harness.regexes import tree
from harness.vocabulary import Vocabulary


class Speech:
    """What the tokens of one vocabulary can spell."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        stops = frozenset(vocabulary.stop_ids)
        self._spellings = frozenset(token for i, token in enumerate(vocabulary.tokens) if token and i not in stops)
        self._singles = frozenset(token[0] for token in self._spellings if len(token) == 1)
        self._longest = max(map(len, self._spellings), default=0)

    def spells(self, text: str) -> bool:
        """Whether some tokens one after the other are `text`; half a surrogate pair is no text."""
        try:
            data = text.encode()
        except UnicodeEncodeError:
            return False
        if self._singles.issuperset(data):
            return True
        reached = [True] + [False] * len(data)
        for end in range(1, len(data) + 1):
            starts = range(max(0, end - self._longest), end)
            reached[end] = any(reached[start] and data[start:end] in self._spellings for start in starts)
        return reached[-1]

    def has(self, character: str) -> bool:
        """Whether `character` can stand in a text: tokens spell it, or one holds it."""
        return self.spells(character) or character.encode("utf-8", "surrogatepass") in self._together

    @cached_property
    def _together(self) -> bytes:
        """All tokens, apart from each other by a byte that no text has."""
        return b"\xff".join(self._spellings)


def check_sayable(constraints: Mapping[str, Constraint], vocabulary: Vocabulary) -> None:
    """Raise `ConstraintError` for the first of `constraints` (by example) that names a text which the model cannot
    say."""
    speech = Speech(vocabulary)
    first: dict[Constraint, str] = {}
    for example, constraint in constraints.items():
        first.setdefault(constraint, example)
    for constraint, example in first.items():
        if (found := unsayable(constraint, speech)) is not None:
            raise ConstraintError(
                f"the constraint of example {example!r}: the model has no tokens for {found}",
                "texts that the model's tokens can spell",
                "write it in other characters, leave it out, or take a model whose tokenizer has them",
            )


def unsayable(constraint: Constraint, speech: Speech) -> str | None:
    """What `constraint` names and no tokens spell, in words; None where there is nothing like it. Of regexes and
    grammars each character is looked at (of a class, whether it has one that can be said), of a JSON schema the
    constants and the names of properties."""
    match constraint:
        case Labels(labels=labels):
            return next((_named("label", label, speech) for label in labels if not speech.spells(label)), None)
        case Regex(pattern=pattern):
            try:
                return _character((tree(pattern),), speech)
            except Unsupported:  # each engine says so itself
                return None
        case Grammar(ebnf=ebnf):
            return _character(parse(ebnf).values(), speech)
        case JsonSchema(schema=schema):
            texts = ((text, json.dumps(text, ensure_ascii=False)) for text in _texts(json.loads(schema)))
            return next((_named("JSON string", text, speech) for text, said in texts if not speech.spells(said)), None)


def _named(kind: str, text: str, speech: Speech) -> str:
    missing = next((character for character in text if not speech.has(character)), None)
    return f"the {kind} {text!r}" + (f": {_point(missing)}" if missing is not None else "")


def _character(expressions: Iterable[Expression], speech: Speech) -> str | None:
    """A place for one character of which none can be said."""
    places = (chars for expression in expressions for chars in _places(expression))
    missing = next((chars for chars in places if not _any(chars, speech)), None)
    if missing is None:
        return None
    first, last = missing.ranges[0][0], missing.ranges[-1][-1]
    return _point(chr(first)) if first == last else f"any character from {_point(chr(first))} to {_point(chr(last))}"


def _any(chars: Chars, speech: Speech) -> bool:
    """A class without members is no text's fault."""
    members = (chr(code) for low, high in chars.ranges for code in range(low, high + 1))
    return not chars.ranges or any(map(speech.has, members))


def _places(expression: Expression) -> Iterator[Chars]:
    match expression:
        case Chars():
            yield expression
        case Concat(items=items) | Either(items=items):
            for item in items:
                yield from _places(item)
        case Repeat(item=item):
            yield from _places(item)
        case Rule():
            return


def _texts(schema: Any) -> Iterator[str]:
    """The strings that a schema names: constants, and names of properties."""
    match schema:
        case dict():
            for keyword, value in schema.items():
                yield from _of_keyword(keyword, value)
        case list():
            for part in schema:
                yield from _texts(part)


def _of_keyword(keyword: str, value: Any) -> Iterator[str]:
    match keyword, value:
        case "const", _:
            yield from _strings(value)
        case "enum" | "required", list():
            yield from _strings(value)
        case "properties", dict():
            yield from value
            yield from _texts(list(value.values()))
        case "default" | "examples" | "title" | "description" | "$comment", _:
            return
        case (("$defs" | "definitions" | "patternProperties" | "dependentSchemas"), dict()):
            yield from _texts(list(value.values()))
        case _:
            yield from _texts(value)


def _strings(value: Any) -> Iterator[str]:
    """All strings in a JSON value, its keys too."""
    match value:
        case str():
            yield value
        case list():
            for part in value:
                yield from _strings(part)
        case dict():
            yield from _strings([*value.keys(), *value.values()])


def _point(character: str) -> str:
    return f"{character!r} (U+{ord(character):04X})"
