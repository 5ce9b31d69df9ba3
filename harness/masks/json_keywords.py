"""What a JSON schema asserts, and whether a library that reads it would pass over any of it without a word.

Libraries ignore keywords they do not know or cannot combine, and the constraint is then weaker than it was asked for.
Each engine describes what its library follows (`Support`); everything else that asserts is `Unsupported`.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import jsonschema
import msgspec

from harness.errors import Unsupported
from harness.json_formats import ANNOTATIONS

Schema = Mapping[str, Any]

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
NUMERIC = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
BY_TYPE: Mapping[str, frozenset[str]] = {
    "null": frozenset(),
    "boolean": frozenset(),
    "integer": NUMERIC,
    "number": NUMERIC,
    "string": frozenset({"minLength", "maxLength", "pattern", "format"}),
    "array": frozenset(
        {"items", "prefixItems", "additionalItems", "unevaluatedItems", "minItems", "maxItems", "uniqueItems"}
        | {"contains", "minContains", "maxContains"}
    ),
    "object": frozenset(
        {"properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames"}
        | {"required", "minProperties", "maxProperties", "dependentRequired", "dependentSchemas", "dependencies"}
    ),
}
"""The keywords that say something of values of one type; they say nothing of others."""

CHOOSING = frozenset({"$ref", "const", "enum", "anyOf", "oneOf", "allOf"})
"""The keywords that put other schemas or plain values in the place of this one."""

BEYOND = frozenset({"not", "if", "then", "else", "$dynamicRef", "$recursiveRef"})
ASSERTING = frozenset().union(*BY_TYPE.values()) | CHOOSING | BEYOND | {"type"}


class Support(msgspec.Struct, frozen=True):
    """What a library follows: `choosing` of `CHOOSING`, and by type the keywords and formats."""

    choosing: frozenset[str]
    by_type: Mapping[str, frozenset[str]]
    formats: frozenset[str]


def check(whole: Any, support: Support, extra: Callable[[Schema, str], None]) -> None:
    """Raise `Unsupported` for the first part of a schema that the library would pass over. `extra` looks at each part,
    with its path, for what is particular to a library."""
    for schema, path in _parts(whole):
        if beyond := sorted(schema.keys() & (BEYOND | (CHOOSING - support.choosing))):
            raise Unsupported(f"{path}: {beyond[0]}")
        if schema.keys() & CHOOSING:
            check_choice(schema, whole, path)
        else:
            _check_types(schema, support, path)
        extra(schema, path)


def check_choice(schema: Schema, whole: Any, path: str) -> None:
    """Raise `Unsupported` where a choosing keyword stands beside others that assert more, or where `oneOf` may not be
    read as `anyOf`. Beside plain values, whatever all of them meet is harmless."""
    chosen = sorted(schema.keys() & CHOOSING)
    beside = sorted((schema.keys() & ASSERTING) - {chosen[0]})
    if chosen[0] in ("const", "enum"):
        if beside and not values_fit(schema):
            raise Unsupported(f"{path}: {chosen[0]} beside {beside[0]}")
        return
    if beside and not (beside == ["type"] and _all_of_type(schema[chosen[0]], schema["type"])):
        raise Unsupported(f"{path}: {chosen[0]} beside {beside[0]}")
    if "oneOf" in schema:
        check_apart([followed(whole, branch) for branch in schema["oneOf"]], path)
    if len(schema.get("allOf", [None])) != 1:
        raise Unsupported(f"{path}: allOf of several")


def check_apart(branches: Sequence[Any], path: str) -> None:
    """Raise `Unsupported` unless it is plain that no value meets two of the branches: their types differ, or they are
    lists of different values, or they require a property with different values."""
    for i, first in enumerate(branches):
        for second in branches[:i]:
            if not _apart(first, second):
                raise Unsupported(f"{path}: oneOf whose branches may overlap")


def values_fit(schema: Schema) -> bool:
    """Whether all values of `const` or `enum` meet what else the schema asserts, `$ref` aside."""
    if "$ref" in schema:
        return False
    values = [schema["const"]] if "const" in schema else schema["enum"]
    return all(map(jsonschema.Draft202012Validator(dict(schema)).is_valid, values))


def types(schema: Schema) -> tuple[str, ...]:
    """The types that a schema allows; all where it names none."""
    named = schema.get("type", TYPES)
    return (named,) if isinstance(named, str) else tuple(named)


def resolve(whole: Any, pointer: str) -> Any:
    """The part of a schema at a reference inside it. Raises `Unsupported`."""
    if not pointer.startswith("#"):
        raise Unsupported(f"the reference {pointer!r} leads out of the schema")
    found = whole
    for step in pointer[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        try:
            found = found[int(name)] if isinstance(found, list) else found[name]
        except (KeyError, IndexError, ValueError, TypeError):
            raise Unsupported(f"the reference {pointer!r} leads nowhere") from None
    return found


def followed(whole: Any, schema: Any) -> Any:
    """The schema that a reference leads to, through as many references as there are."""
    seen: set[str] = set()
    while isinstance(schema, dict) and isinstance(pointer := schema.get("$ref"), str):
        if pointer in seen:
            raise Unsupported(f"the reference {pointer!r} leads to itself")
        seen.add(pointer)
        schema = resolve(whole, pointer)
    return schema


def children(schema: Schema) -> Iterator[tuple[str, Any]]:
    """The schemas inside a schema, with the way to each; references are not followed."""
    for keyword in ("items", "additionalItems", "contains", "additionalProperties", "propertyNames", "not"):
        if isinstance(schema.get(keyword), dict | bool):
            yield keyword, schema[keyword]
    for keyword in ("items", "prefixItems", "anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(keyword), list):
            yield from ((f"{keyword}/{i}", part) for i, part in enumerate(schema[keyword]))
    for keyword in ("properties", "patternProperties"):
        if isinstance(schema.get(keyword), dict):
            yield from ((f"{keyword}/{name}", part) for name, part in schema[keyword].items())


def _parts(whole: Any) -> Iterator[tuple[Schema, str]]:
    """Every schema that counts, each once; what stands under `$defs` counts where it is referred to."""
    seen: set[str] = set()
    todo: list[tuple[Any, str]] = [(whole, "#")]
    while todo:
        schema, path = todo.pop()
        if not isinstance(schema, dict):
            continue
        yield schema, path
        todo.extend((part, f"{path}/{way}") for way, part in children(schema))
        pointer = schema.get("$ref")
        if isinstance(pointer, str) and pointer not in seen:
            seen.add(pointer)
            todo.append((resolve(whole, pointer), pointer))


def _check_types(schema: Schema, support: Support, path: str) -> None:
    for kind in types(schema):
        if kind not in TYPES:
            raise Unsupported(f"{path}: the type {kind!r}")
        if ignored := sorted((schema.keys() & BY_TYPE[kind]) - support.by_type[kind]):
            raise Unsupported(f"{path}: {ignored[0]}")
    named = schema.get("format")
    if named is not None and "string" in types(schema) and named not in support.formats | ANNOTATIONS:
        raise Unsupported(f"{path}: the format {named!r}")


def _all_of_type(branches: Any, named: Any) -> bool:
    return isinstance(branches, list) and all(isinstance(b, dict) and b.get("type") == named for b in branches)


def _apart(first: Any, second: Any) -> bool:
    if not (isinstance(first, dict) and isinstance(second, dict)):
        return False
    if not _kinds(first) & _kinds(second):
        return True
    shared = frozenset(first.get("required", ())) & frozenset(second.get("required", ()))
    pairs = [(first, second)]
    pairs += [(first.get("properties", {}).get(n, {}), second.get("properties", {}).get(n, {})) for n in shared]
    return any(_differ(_values(a), _values(b)) for a, b in pairs)


def _kinds(schema: Schema) -> frozenset[str]:
    """Whole numbers are numbers."""
    return frozenset("number" if kind == "integer" else kind for kind in types(schema))


def _values(schema: Any) -> frozenset[str]:
    """The values that a schema lists, as text; none where it lists none. 1 and 1.0 are the same number."""
    if not isinstance(schema, dict):
        return frozenset()
    listed = [schema["const"]] if "const" in schema else schema.get("enum", [])
    return frozenset(json.dumps(_plain(value), sort_keys=True, default=float) for value in listed)


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, float | Decimal) and value == int(value) else value


def _differ(first: frozenset[str], second: frozenset[str]) -> bool:
    return bool(first and second) and not first & second
