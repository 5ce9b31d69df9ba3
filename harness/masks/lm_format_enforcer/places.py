"""Where in a JSON text a parser is, and which characters the library treats alike there."""

from lmformatenforcer import CharacterLevelParser, JsonSchemaParser, UnionParser
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


def between(parser: CharacterLevelParser) -> bool:
    """Whether the text so far ends between two tokens of JSON, or in one that holds no white space."""
    if isinstance(parser, JsonSchemaParser):
        return not parser.object_stack or _outside(parser.object_stack[-1])
    return isinstance(parser, UnionParser) and all(between(part) for part in parser.parsers)


def spaces_before(parser: CharacterLevelParser) -> int:
    """How many spaces the text so far ends with, which the library counts; `parser` is between two tokens of JSON."""
    return (
        spaces_before(parser.parsers[0]) if isinstance(parser, UnionParser) else int(parser.num_consecutive_whitespaces)
    )


def _outside(part: CharacterLevelParser) -> bool:
    if isinstance(part, UnionParser):
        return all(_outside(one) for one in part.parsers)
    return not (isinstance(part, StringParsingState) and part.require_opening_quote and _open(part))


def _open(string: StringParsingState) -> bool:
    return bool(string.seen_opening_quote and not string.seen_closing_quote)


def free_string(parser: CharacterLevelParser) -> bool:
    """Whether the text so far ends in a JSON string that may be any text, or any of some lengths."""
    top = parser.object_stack[-1] if isinstance(parser, JsonSchemaParser) and parser.object_stack else None
    if not isinstance(top, StringParsingState) or top.allowed_strings or top.regex_parser:
        return False
    below = parser.object_stack[-2] if len(parser.object_stack) > 1 else None
    asked = isinstance(below, ObjectParsingState) and bool(below.schema_object.required)  # it looks at its keys
    return top.require_opening_quote and top.require_closing_quote and _open(top) and not asked


def alike(parser: CharacterLevelParser, character: str, letters: frozenset[str]) -> str:
    """The characters that lead where `character` leads; `letters` are all that may come next."""
    if character in SPACES:
        return SPACES if letters >= ALL_SPACES and between(parser) else character
    top = parser.object_stack[-1] if isinstance(parser, JsonSchemaParser) and parser.object_stack else None
    return DIGITS if isinstance(top, NumberParsingState) and letters.issuperset(DIGITS) else character
