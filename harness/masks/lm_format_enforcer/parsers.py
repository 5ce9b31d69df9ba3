"""Constraints as the library's own parsers, and which of them it cannot express."""

import json
from typing import Any

from interegular.fsm import anything_else
from lmformatenforcer import (
    CharacterLevelParser,
    CharacterLevelParserConfig,
    JsonSchemaParser,
    RegexParser,
)
from lmformatenforcer.external.jsonschemaobject import JsonSchemaObject
from lmformatenforcer.jsonschemaparser import _ANY_JSON_SCHEMA_DICT as ANY

from harness.constraint import Constraint, Grammar, JsonSchema, Labels, Regex
from harness.errors import Unsupported
from harness.masks.lm_format_enforcer.spelling import spelling
from harness.masks.lm_format_enforcer.survey import survey
from harness.masks.whitespace import MOST
from harness.regexes import portable

ARRAY_ITEMS = 20
"""The library's default: an array without `maxItems` ends after so many items, so that no model is trapped in it."""


def parser(constraint: Constraint, alphabet: str) -> tuple[CharacterLevelParser, str]:
    """The parser before the text, and its alphabet: `alphabet` and what the constraint names. Raises `Unsupported`."""
    match constraint:
        case Labels(labels=labels):
            return spelling(labels), _union(alphabet, "".join(labels))
        case Regex(pattern=pattern):
            return _regex(portable(pattern), alphabet)
        case JsonSchema(schema=schema):
            return _json(json.loads(schema), _union(alphabet, schema))
        case Grammar():
            raise Unsupported("lm-format-enforcer reads no grammars (a parser of one's own can be named with `call`)")


def config(alphabet: str) -> CharacterLevelParserConfig:
    """Everything that the library would otherwise take from environment variables."""
    return CharacterLevelParserConfig(
        alphabet=alphabet,
        max_consecutive_whitespaces=MOST,
        force_json_field_order=False,
        max_json_array_length=ARRAY_ITEMS,
    )


def _regex(pattern: str, alphabet: str) -> tuple[CharacterLevelParser, str]:
    start = RegexParser(pattern, config(alphabet))
    whole = _union(alphabet, _named(start))
    start.config = config(whole)
    return start, whole


def _json(schema: Any, alphabet: str) -> tuple[CharacterLevelParser, str]:
    """The library keeps regexes in one table for all schemas and all alphabets; this one is the schema's own."""
    context = JsonSchemaParser._Context()
    context.regex_parser_cache = {}
    try:
        context.model_class = JsonSchemaObject(**_without_self(schema if isinstance(schema, dict) else ANY))
        start = JsonSchemaParser(context, config(alphabet))
        context.active_parser = start
        survey(start)
    except Unsupported:
        raise
    except Exception as error:  # what the library cannot express it says with exceptions of every kind
        raise Unsupported(f"lm-format-enforcer: {error or type(error).__name__}") from error
    regexes = context.regex_parser_cache.values()
    whole = _union(alphabet, *(_named(regex) for regex in regexes))
    start.config = config(whole)
    context.alphabet_without_quotes = whole.replace('"', "")
    for regex in regexes:
        regex.config = start.config
    return start, whole


def _named(regex: RegexParser) -> str:
    """The characters that a regex names."""
    return "".join(symbol for symbol in regex.context.pattern.alphabet if symbol != anything_else)


def _union(alphabet: str, *more: str) -> str:
    new = set().union(*more) - set(alphabet)
    return alphabet + "".join(sorted(character for character in new if character >= " "))


SCHEMAS = {"properties", "patternProperties", "definitions", "$defs"}
"""Keywords that hold schemas by name."""

PARTS = {"items", "additionalProperties", "anyOf", "oneOf", "allOf"}
"""Keywords that hold a schema or a list of them."""


def _without_self(schema: Any) -> Any:
    """The schema without a keyword `self`, which says nothing in JSON Schema and which the library's class cannot
    take."""
    if isinstance(schema, list):
        return [_without_self(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {keyword: _inner(keyword, value) for keyword, value in schema.items() if keyword != "self"}


def _inner(keyword: str, value: Any) -> Any:
    if keyword in SCHEMAS and isinstance(value, dict):
        return {name: _without_self(part) for name, part in value.items()}
    return _without_self(value) if keyword in PARTS else value
