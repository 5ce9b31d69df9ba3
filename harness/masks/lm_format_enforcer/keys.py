"""Keys under which two states of the library's JSON parser are one state: from equal keys on, both give the same answers.

The library makes new objects for every character and compares none of them. What the answers can depend on is in the key;
what was said before, and matters no more, is not (the text of a string that any text could be, the digits of a number).
"""

from collections.abc import Hashable
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

AFTER_KEY = ObjectParsingStage.PARSING_KEY_VALUE_SEPARATOR


class Keys:
    """Makes the keys of one automaton's states. It numbers schemas by their content, because the library reads a `$ref`
    anew each time it meets it."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._known: dict[int, tuple[Any, int]] = {}

    def key(self, parser: CharacterLevelParser) -> Hashable | None:
        """The key of `parser`; None for a class of a user's own that offers none."""
        match parser:
            case JsonSchemaParser():
                return self._json(parser)
            case UnionParser() | SequenceParser():
                parts = tuple(self.key(part) for part in parser.parsers)
                return None if None in parts else (type(parser), parts)
            case RegexParser():
                return (id(parser.context), parser.current_state)
            case StringParser():
                return ("text", parser.target_str)
            case ForceStopParser():
                return ("stop", parser.allow_whitespace)
            case ObjectParsingState():
                return self._object(parser)
            case ListParsingState():
                return self._list(parser)
            case StringParsingState():
                return self._string(parser, None)
            case NumberParsingState():
                return _number(parser)
            case _:
                return None

    def _json(self, parser: JsonSchemaParser) -> Hashable | None:
        stack = parser.object_stack
        parts: list[Hashable | None] = []
        for below, part in zip([None, *stack], stack, strict=False):
            owner = below if isinstance(below, ObjectParsingState) and below.current_stage is AFTER_KEY else None
            parts.append(self._string(part, owner) if isinstance(part, StringParsingState) else self.key(part))
        waits = bool(stack) and isinstance(stack[-1], ObjectParsingState) and stack[-1].current_stage is AFTER_KEY
        return (
            None
            if None in parts
            else (
                tuple(parts),
                parser.num_consecutive_whitespaces,
                parser.last_non_whitespace_character == "[",
                parser.last_parsed_string if waits else None,
            )
        )

    def _object(self, parser: ObjectParsingState) -> Hashable:
        keys = frozenset(parser.existing_keys)
        if parser.is_dictionary:
            keys &= frozenset(parser.schema_object.required or ())
        return ("object", self._number(parser.schema_object), parser.current_stage, keys)

    def _list(self, parser: ListParsingState) -> Hashable:
        opened, closed = parser.seen_list_opener, parser.seen_list_closer
        limits = (parser.min_items, parser.max_items)
        return ("list", self._number(parser.list_member_type), limits, parser.num_items_seen, opened, closed)

    def _string(self, parser: StringParsingState, owner: ObjectParsingState | None) -> Hashable:
        """`owner` is the object of which `parser` is a key."""
        flags = (
            parser.seen_opening_quote,
            parser.seen_closing_quote,
            parser.require_opening_quote,
            parser.require_closing_quote,
        )
        if parser.seen_closing_quote:
            return ("string", flags, _key_text(parser, owner))
        text = _key_text(parser, owner) if owner else None
        return (
            "string",
            flags,
            text,
            tuple(parser.allowed_strings or ()),
            parser.min_length,
            parser.max_length,
            parser.pattern,
            parser.regex_parser and parser.regex_parser.current_state,
            _said(parser),
        )

    def _number(self, schema: Any) -> int:
        known = self._known.get(id(schema))
        if known is None:
            content = repr(schema) if isinstance(schema, bool) else schema.model_dump_json()
            known = self._known[id(schema)] = (schema, self._numbers.setdefault(content, len(self._numbers)))
        return known[1]


def _said(parser: StringParsingState) -> Hashable:
    """What matters of the text of an open string so far."""
    text = parser.parsed_string
    if parser.regex_parser:
        return bool(text)
    if parser.allowed_strings:
        return text
    if parser.max_length is not None:
        return len(text)
    return min(len(text), parser.min_length or 1)


def _key_text(parser: StringParsingState, owner: ObjectParsingState | None) -> str | None:
    """The text of a key, where the object will look at it."""
    if owner is None:
        return None
    text = parser.parsed_string
    if not owner.is_dictionary:
        return text
    required = owner.schema_object.required or ()
    return text if any(name.startswith(text) for name in required) else None


def _number(parser: NumberParsingState) -> Hashable:
    """The library looks at a number's first two characters and at its last; which digit from 1 to 9 never matters."""
    text = "".join("1" if character in "23456789" else character for character in parser.parsed_string)
    flags = (parser.seen_decimal_point, parser.seen_whitespace_after_digits, parser.seen_exponent, parser.seen_digit)
    return ("number", parser.allow_floating_point, flags, text if len(text) < 3 else "..." + text[-1])
