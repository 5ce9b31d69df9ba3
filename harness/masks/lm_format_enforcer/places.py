"""Where in a JSON text a parser is, and which characters the library treats alike there.

Only of the library's own classes: a class of a user's own that inherits from one may do otherwise.
"""

from typing import Any

from lmformatenforcer import CharacterLevelParser, JsonSchemaParser, RegexParser, UnionParser
from lmformatenforcer.jsonschemaparser import NumberParsingState, ObjectParsingState, StringParsingState

from harness.masks.lm_format_enforcer.tree import SPACES

ALL_SPACES = frozenset(SPACES)
DIGITS = "123456789"
"""A zero in front is another matter."""

ALIKE = frozenset(SPACES + DIGITS)
"""Characters that may lead where others lead."""

APART = frozenset('"\\[' + SPACES)
"""Characters that do not lead where the other characters of a string lead (whether the last one was a bracket matters
to a list around it)."""


def top(parser: CharacterLevelParser) -> Any:
    """The part of a JSON parser that takes the next character first; None where there is none."""
    return parser.object_stack[-1] if type(parser) is JsonSchemaParser and parser.object_stack else None


def between(parser: CharacterLevelParser) -> bool:
    """Whether the text so far ends between two tokens of JSON, or in one that holds no white space."""
    if type(parser) is JsonSchemaParser:
        return not parser.object_stack or _outside(top(parser))
    return type(parser) is UnionParser and all(between(part) for part in parser.parsers)


def spaces_before(parser: CharacterLevelParser) -> int:
    """How many spaces the text so far ends with, as the library counts them in JSON."""
    return spaces_before(parser.parsers[0]) if type(parser) is UnionParser else int(parser.num_consecutive_whitespaces)


def _outside(part: CharacterLevelParser) -> bool:
    if type(part) is UnionParser:
        return all(_outside(one) for one in part.parsers)
    return not in_string(part)


def in_string(part: Any) -> bool:
    """Whether a part of a JSON parser is a string between its quotes."""
    return bool(
        type(part) is StringParsingState
        and part.require_opening_quote
        and part.require_closing_quote
        and part.seen_opening_quote
        and not part.seen_closing_quote
    )


def free_string(parser: CharacterLevelParser) -> bool:
    """Whether the text so far ends in a JSON string that may be any text, or any of some lengths."""
    string = top(parser)
    if not in_string(string) or string.allowed_strings or string.regex_parser:
        return False
    below: Any = parser.object_stack[-2] if len(parser.object_stack) > 1 else None
    return not (type(below) is ObjectParsingState and below.schema_object.required)  # it may look at its keys


def regex(parser: CharacterLevelParser) -> RegexParser | None:
    """The regex whose text is being said."""
    if type(parser) is RegexParser:
        return parser
    return top(parser).regex_parser if in_string(top(parser)) else None


def alike(parser: CharacterLevelParser, character: str, letters: frozenset[str]) -> str:
    """The characters that lead where `character` leads; `letters` are all that may come next."""
    if character in SPACES:
        return SPACES if letters >= ALL_SPACES and between(parser) else character
    return DIGITS if type(top(parser)) is NumberParsingState and letters.issuperset(DIGITS) else character
