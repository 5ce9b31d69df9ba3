"""Keys under which two states of the library's parsers are one state: from equal keys on, both give the same answers.

The library makes new objects for every character and compares none of them. What its answers can depend on is in the
key; what was said before, and matters no more, is not: the text of a string that may be any text, the digits of a
number, the order of an object's keys.
"""

from collections.abc import Callable, Hashable
from itertools import count
from typing import Any

from lmformatenforcer import (
    CharacterLevelParser,
    JsonSchemaParser,
    RegexParser,
    SequenceParser,
    StringParser,
    UnionParser,
)
from lmformatenforcer.characterlevelparser import ForceStopParser
from lmformatenforcer.jsonschemaparser import (
    ListParsingState,
    NumberParsingState,
    ObjectParsingStage,
    ObjectParsingState,
    StringParsingState,
)

from harness.masks.lm_format_enforcer.spelling import Spelling

NUMBER = "_harness_number"
"""Attribute under which a part of a parser carries its number; the library copies parts before it changes them."""

DIGITS = "123456789"


class Keys:
    """Makes the keys of one automaton's states: numbers for their parts, equal for equal parts."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._next = count(1)
        self._held: dict[int, tuple[Any, int]] = {}

    def forget(self) -> None:
        """Drop everything; numbers are never given twice."""
        self._numbers.clear()
        self._held.clear()

    def state(self, parser: CharacterLevelParser) -> int:
        """The key of a state; one that no other has where `parser` holds a class of a user's own without a
        `cache_key`."""
        return self.of(parser) or next(self._next)

    def of(self, parser: CharacterLevelParser) -> int | None:
        """The key of `parser` or of a part of one."""
        describe = _DESCRIBE.get(type(parser))
        if describe is None:
            key = parser.cache_key()
            return None if key is None else self._number((type(parser), key))
        known: int | None = getattr(parser, NUMBER, None)
        return known or self._mark(parser, describe(self, parser))

    def _mark(self, parser: CharacterLevelParser, content: Hashable | None) -> int | None:
        if content is None:
            return None
        number = self._number(content)
        setattr(parser, NUMBER, number)
        return number

    def _number(self, content: Hashable) -> int:
        known = self._numbers.get(content)
        if known is None:
            known = self._numbers[content] = next(self._next)
        return known

    def _json(self, parser: JsonSchemaParser) -> Hashable | None:
        parts: list[int | None] = []
        below: CharacterLevelParser | None = None
        for part in parser.object_stack:
            if type(part) is StringParsingState and _expects_key(below):
                parts.append(getattr(part, NUMBER, None) or self._mark(part, self._key_string(part, below)))
            else:
                parts.append(self.of(part))
            below = part
        if None in parts:
            return None
        spaces, first_item = parser.num_consecutive_whitespaces, parser.last_non_whitespace_character == "["
        return (*parts, spaces, first_item, parser.last_parsed_string if _expects_key(below) else None)

    def _several(self, parser: UnionParser | SequenceParser) -> Hashable | None:
        parts = [self.of(part) for part in parser.parsers]
        return None if None in parts else (type(parser), *parts)

    def _regex(self, parser: RegexParser) -> Hashable:
        return ("regex", id(parser.context), parser.current_state)

    def _spelling(self, parser: Spelling) -> Hashable | None:
        start = None if parser.string is None else self.of(parser.string)
        return ("spelling", start or id(parser.words), parser.words[parser.low][: parser.size])

    def _text(self, parser: StringParser) -> Hashable:
        return ("text", parser.target_str)

    def _stop(self, parser: ForceStopParser) -> Hashable:
        return ("stop", parser.allow_whitespace)

    def _object(self, parser: ObjectParsingState) -> Hashable:
        keys = frozenset(parser.existing_keys)
        if parser.is_dictionary:
            keys &= frozenset(parser.schema_object.required or ())
        return ("object", self._schema(parser.schema_object), parser.current_stage.value, keys)

    def _list(self, parser: ListParsingState) -> Hashable:
        opened, closed = parser.seen_list_opener, parser.seen_list_closer
        limits = (parser.min_items, parser.max_items)
        return ("list", self._schema(parser.list_member_type), limits, parser.num_items_seen, opened, closed)

    def _string(self, parser: StringParsingState) -> Hashable:
        """A value."""
        needs = (parser.require_opening_quote, parser.require_closing_quote)
        if parser.seen_closing_quote:
            return ("closed", needs)
        regex = parser.regex_parser
        return (
            "string",
            needs,
            parser.seen_opening_quote,
            regex and (id(regex.context), regex.current_state),
            None if regex else self._strings(parser.allowed_strings),
            (parser.min_length, parser.max_length),
            _said(parser),
        )

    def _key_string(self, parser: StringParsingState, owner: Any) -> Hashable:
        """A key of the object `owner`, which lies below it and settles what keys there may be."""
        text = parser.parsed_string
        if owner.is_dictionary and not any(name.startswith(text) for name in owner.schema_object.required or ()):
            return ("key", parser.seen_closing_quote, parser.seen_opening_quote, bool(text))
        return ("key", parser.seen_closing_quote, parser.seen_opening_quote, text)

    def _digits(self, parser: NumberParsingState) -> Hashable:
        """The library looks at the first two characters and at the last; which digit from 1 to 9 never matters."""
        text = "".join("1" if character in "23456789" else character for character in parser.parsed_string[:3])
        flags = (
            parser.seen_decimal_point,
            parser.seen_whitespace_after_digits,
            parser.seen_exponent,
            parser.seen_digit,
        )
        last = parser.parsed_string[-1:]
        short = text if len(text) < 3 else "..." + ("1" if last in "23456789" else last)
        return ("number", parser.allow_floating_point, flags, short)

    def _schema(self, schema: Any) -> int:
        """Equal for equal schemas, because the library reads a `$ref` anew each time it meets it."""
        known = self._held.get(id(schema))
        if known is None:
            content = repr(schema) if isinstance(schema, bool) else schema.model_dump_json()
            known = self._held[id(schema)] = (schema, self._number(content))
        return known[1]

    def _strings(self, strings: list[str] | None) -> int | None:
        if not strings:
            return None
        known = self._held.get(id(strings))
        if known is None:
            known = self._held[id(strings)] = (strings, self._number(("one of", *strings)))
        return known[1]


def _expects_key(parser: CharacterLevelParser | None) -> bool:
    """Whether `parser` is an object that waits for a key, or for the colon behind it."""
    waits = ObjectParsingStage.PARSING_KEY_VALUE_SEPARATOR
    return isinstance(parser, ObjectParsingState) and parser.current_stage is waits


def _said(parser: StringParsingState) -> Hashable:
    """What matters of the text of an open string so far."""
    text: str = parser.parsed_string
    if parser.regex_parser:
        return bool(text)
    if parser.allowed_strings:
        return text
    if parser.max_length is not None:
        return len(text)
    return min(len(text), parser.min_length or 1)


_DESCRIBE: dict[type, Callable[[Keys, Any], Hashable | None]] = {
    JsonSchemaParser: Keys._json,
    UnionParser: Keys._several,
    SequenceParser: Keys._several,
    RegexParser: Keys._regex,
    Spelling: Keys._spelling,
    StringParser: Keys._text,
    ForceStopParser: Keys._stop,
    ObjectParsingState: Keys._object,
    ListParsingState: Keys._list,
    StringParsingState: Keys._string,
    NumberParsingState: Keys._digits,
}
