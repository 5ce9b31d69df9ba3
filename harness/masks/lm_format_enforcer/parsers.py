"""Constraints as the library's own character-level parsers."""

import json
from typing import Any

from lmformatenforcer import (
    CharacterLevelParser,
    CharacterLevelParserConfig,
    JsonSchemaParser,
    LMFormatEnforcerException,
    RegexParser,
    StringParser,
    UnionParser,
)

from harness.constraint import Constraint, Grammar, JsonSchema, Labels, Regex, Whitespace
from harness.errors import Unsupported
from harness.masks.whitespace import MOST
from harness.regexes import portable

ARRAY_ITEMS = 20
"""The library's default: an array without `maxItems` ends after so many items, so that no model is trapped in it."""


def parser(constraint: Constraint, alphabet: str) -> CharacterLevelParser:
    """The parser at the start of the text. Raises `Unsupported`."""
    match constraint:
        case Labels(labels=labels):
            return UnionParser([StringParser(label) for label in sorted(set(labels))])
        case Regex(pattern=pattern):
            return RegexParser(portable(pattern), config(alphabet, "flexible"))
        case JsonSchema(schema=schema, whitespace=whitespace):
            return _json(json.loads(schema), config(alphabet, whitespace))
        case Grammar():
            raise Unsupported("lm-format-enforcer has no grammars; write a parser (see docs) and name it with `call`")


def config(alphabet: str, whitespace: Whitespace) -> CharacterLevelParserConfig:
    """Everything that the library would otherwise take from environment variables."""
    return CharacterLevelParserConfig(
        alphabet=alphabet,
        max_consecutive_whitespaces=MOST if whitespace == "flexible" else 0,
        force_json_field_order=False,
        max_json_array_length=ARRAY_ITEMS,
    )


def _json(schema: Any, settings: CharacterLevelParserConfig) -> CharacterLevelParser:
    whole = schema if isinstance(schema, dict) else {}
    try:
        return JsonSchemaParser(whole, settings)
    except LMFormatEnforcerException as error:
        raise Unsupported(str(error)) from error
    except Exception as error:  # the library says what it cannot express with exceptions of any kind
        raise Unsupported(f"lm-format-enforcer: {type(error).__name__}: {error}") from error
