"""Constraints in the words of the server's own grammar backends.

Each backend reads another dialect of regexes and grammars, and has its own way of saying how much white space JSON may
have. The same spellings go out as those that the embedded engines get, so that a constraint means the same on both.
"""

import json
from collections.abc import Mapping
from typing import Any

from harness.constraint import Constraint, Grammar, JsonSchema, Labels, Regex, Whitespace, labels_pattern
from harness.deployments.sglang.values import ServerGrammar
from harness.errors import Unsupported
from harness.grammar import parse
from harness.masks.gbnf import gbnf
from harness.masks.lark import lark
from harness.masks.whitespace import PATTERN
from harness.regexes import portable

_WANTS = {True: "without --constrained-json-disable-any-whitespace", False: "--constrained-json-disable-any-whitespace"}


def server_grammar(constraint: Constraint, server: Mapping[str, Any]) -> ServerGrammar:
    """`constraint` for the grammar backend of a server that says `server` of itself. Raises `Unsupported`."""
    backend = str(server.get("grammar_backend"))
    match constraint:
        case Labels(labels=labels):
            return ServerGrammar("regex", labels_pattern(labels))
        case Regex(pattern=pattern):
            return ServerGrammar("regex", portable(pattern))
        case JsonSchema(schema=schema, whitespace=whitespace):
            return ServerGrammar("json_schema", _json(schema, whitespace, backend, server))
        case Grammar(ebnf=ebnf):
            return ServerGrammar("ebnf", _ebnf(ebnf, backend))


def _json(schema: str, whitespace: Whitespace, backend: str, server: Mapping[str, Any]) -> str:
    flexible = whitespace == "flexible"
    if backend == "llguidance":
        return json.dumps(_with_options(json.loads(schema), flexible), ensure_ascii=False)
    allows = not server.get("constrained_json_disable_any_whitespace")
    if allows != flexible:
        raise Unsupported(f"{backend}: {whitespace} white space needs a server started {_WANTS[flexible]}")
    return schema


def _with_options(schema: object, flexible: bool) -> dict[str, object]:
    """llguidance takes its options inside the schema; `true` is `{}` to it."""
    options: dict[str, object] = {"whitespace_flexible": flexible, "item_separator": ",", "key_separator": ":"}
    if flexible:
        options["whitespace_pattern"] = PATTERN
    return (schema if isinstance(schema, dict) else {}) | {"x-guidance": options}


def _ebnf(ebnf: str, backend: str) -> str:
    match backend:
        case "llguidance":
            return lark(parse(ebnf))
        case "xgrammar":
            return gbnf(parse(ebnf))
        case _:
            raise Unsupported(f"{backend} takes no grammars")
