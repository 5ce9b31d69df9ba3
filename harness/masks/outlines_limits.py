"""What outlines-core passes over or misreads in a JSON schema (read in its parser, 0.2.14, and tried): refused here.

The library knows no bounds of numbers, no `uniqueItems`, reads `required` for declared properties only, drops a
pattern beside a length, pastes patterns and the alternatives of `{}` into the text without a group around them, takes
`prefixItems` for the whole array, and follows references four deep, where it leaves out properties that lead further,
required ones too.
"""

from typing import Any

from harness.errors import Unsupported
from harness.expression import Chars, Concat, Either, Expression, Repeat
from harness.masks.json_keywords import BY_TYPE, CHOOSING, Schema, Support, check, children, resolve, types
from harness.masks.json_text import PLAIN, both
from harness.regexes import searched, tree

DEEPEST = 3
"""References inside references that the library follows beyond the first."""

SUPPORT = Support(
    choosing=CHOOSING,
    by_type={
        "null": frozenset(),
        "boolean": frozenset(),
        "integer": frozenset(),
        "number": frozenset(),
        "string": BY_TYPE["string"],
        "array": frozenset({"items", "prefixItems", "minItems", "maxItems"}),
        "object": frozenset({"properties", "required", "additionalProperties", "minProperties", "maxProperties"}),
    },
    formats=frozenset({"uuid", "date", "time", "date-time", "uri", "email"}),
)


def check_schema(whole: Any) -> None:
    """Raise `Unsupported` for a schema that outlines-core would read as a weaker one."""
    check(whole, SUPPORT, _check_part)
    _check_depth(whole, whole, 0, "#")


def _check_part(schema: Schema, path: str) -> None:
    if not schema and path != "#":
        raise Unsupported(f"{path}: a part that may be any value")
    if schema.keys() & CHOOSING:
        return
    if "string" in types(schema):
        _check_string(schema, path)
    if "prefixItems" in schema:
        _check_prefix(schema, path)
    if "object" in types(schema):
        _check_object(schema, path)


def _check_string(schema: Schema, path: str) -> None:
    said = [keyword for keyword in ("format", "pattern") if keyword in schema]
    if len(said) == 2 or (said and schema.keys() & {"minLength", "maxLength"}):
        raise Unsupported(f"{path}: {said[0]} beside another keyword for strings")
    pattern = schema.get("pattern")
    if pattern is None:
        return
    if not (pattern.startswith("^") and pattern.endswith("$") and searched(pattern) == tree(pattern)):
        raise Unsupported(f"{path}: a pattern that is not anchored as a whole, or has classes that stand for more")
    if not _plain(tree(pattern)):
        raise Unsupported(f"{path}: a pattern with characters that JSON must escape")


def _plain(expression: Expression) -> bool:
    """Whether a pattern matches only characters that stand in JSON strings as they are."""
    match expression:
        case Chars():
            return both(expression, PLAIN) == expression
        case Concat(items=items) | Either(items=items):
            return all(map(_plain, items))
        case Repeat(item=item):
            return _plain(item)
        case _:
            return False


def _check_prefix(schema: Schema, path: str) -> None:
    size = len(schema["prefixItems"])
    if not schema.get("minItems", 0) <= size <= schema.get("maxItems", size):
        raise Unsupported(f"{path}: prefixItems of another length than minItems and maxItems ask for")


def _check_object(schema: Schema, path: str) -> None:
    declared = frozenset(schema.get("properties", {}))
    if undeclared := sorted(frozenset(schema.get("required", ())) - declared):
        raise Unsupported(f"{path}: the required property {undeclared[0]!r} is not declared")
    if "properties" in schema and schema.keys() & {"minProperties", "maxProperties"}:
        raise Unsupported(f"{path}: minProperties or maxProperties beside declared properties")


def _check_depth(schema: Any, whole: Any, depth: int, path: str) -> bool:
    """Whether the library would give up inside `schema` because of its depth, up to the next property around it, which
    it then leaves out. Raises `Unsupported` where that property is required."""
    if not isinstance(schema, dict):
        return False
    if isinstance(schema.get("$ref"), str):
        pointer = schema["$ref"]
        return depth > DEEPEST or _check_depth(resolve(whole, pointer), whole, depth + 1, pointer)
    given_up = False
    for way, part in children(schema):
        lost = _check_depth(part, whole, depth, f"{path}/{way}")
        if not way.startswith("properties/"):
            given_up = given_up or lost
        elif lost and way.removeprefix("properties/") in schema.get("required", ()):
            raise Unsupported(f"{path}/{way}: a required property that leads deeper than references are followed")
    return given_up
