"""What lm-format-enforcer cannot express in a JSON schema, found before the first token.

The library reads a part of a schema when the text gets there, and what it cannot read then ends the text, whatever was
said so far. It also takes some schemas that no text of its can end, or whose strings it would spell wrongly.
"""

from collections.abc import Iterable
from typing import Any

from lmformatenforcer import CharacterLevelParser, JsonSchemaParser, UnionParser
from lmformatenforcer.jsonschemaparser import ListParsingState, ObjectParsingState, StringParsingState, get_parser

from harness.errors import Unsupported


def survey(start: JsonSchemaParser) -> None:
    """Read every part of the schema of `start` that a text can get to. Raises `Unsupported`."""
    _Survey(start).schema(start.context.model_class, "$")


class _Survey:
    def __init__(self, root: JsonSchemaParser) -> None:
        self._root = root
        self._seen: set[str] = set()

    def schema(self, schema: Any, path: str) -> None:
        content = repr(schema) if isinstance(schema, bool) else schema.model_dump_json()
        if content not in self._seen:
            self._seen.add(content)
            self._parser(self._read(schema, path), path)

    def _read(self, schema: Any, path: str) -> CharacterLevelParser:
        try:
            return get_parser(self._root, schema)
        except Exception as error:  # the library says what it cannot read with exceptions of every kind
            raise Unsupported(f"lm-format-enforcer at {path}: {error or type(error).__name__}") from error

    def _parser(self, parser: CharacterLevelParser, path: str) -> None:
        match parser:
            case UnionParser():
                for part in parser.parsers:
                    self._parser(part, path)
            case ObjectParsingState():
                self._object(parser, path)
            case ListParsingState():
                self.schema(parser.list_member_type, f"{path}[]")
            case StringParsingState():
                _check_string(parser, path)
            case _:
                pass

    def _object(self, parser: ObjectParsingState, path: str) -> None:
        schema = parser.schema_object
        if parser.is_dictionary:
            self.schema(schema.additionalProperties or JsonSchemaParser.ANY_JSON_OBJECT_SCHEMA, f"{path}.*")
            return
        if unlisted := sorted(set(schema.required or ()) - set(schema.properties)):
            raise Unsupported(f"lm-format-enforcer at {path}: {unlisted[0]!r} is required but not among the properties")
        _check_spelling(schema.properties, path)
        for name, value in schema.properties.items():
            self.schema(value, f"{path}.{name}")


def _check_string(parser: StringParsingState, path: str) -> None:
    strings = parser.allowed_strings or []
    if odd := [value for value in strings if not isinstance(value, str)]:
        raise Unsupported(f"lm-format-enforcer at {path}: {odd[0]!r} among strings")
    _check_spelling(strings, path)
    least, most = parser.min_length or 0, parser.max_length
    if most is not None and (most == 0 or least > most):
        raise Unsupported(f"lm-format-enforcer at {path}: strings of {least} to {most} characters")


def _check_spelling(texts: Iterable[str], path: str) -> None:
    """The library never writes an escape for a string that a schema names."""
    for text in texts:
        if any(character in '"\\' or character < " " for character in text):
            raise Unsupported(f"lm-format-enforcer at {path}: {text!r} has a character that JSON writes as an escape")
