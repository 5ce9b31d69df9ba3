"""What xgrammar passes over in a JSON schema (read in its converter, 0.2.9, and tried): it is refused here.

The library follows `$ref`, `const`, `enum`, `anyOf`, `oneOf`, `allOf` only where they stand alone, knows nothing of
`not`, conditions, dependencies, `uniqueItems` and `contains`, drops lengths beside a pattern or a format, takes an
untyped schema for any value, and enforces `required` for declared properties only.
"""

from typing import Any

from harness.errors import Unsupported
from harness.masks.json_keywords import BY_TYPE, CHOOSING, Schema, Support, check, types
from harness.regexes import searched

FORMATS = frozenset(
    {"email", "date", "time", "date-time", "duration", "ipv4", "ipv6", "hostname", "uuid", "uri", "uri-reference"}
    | {"uri-template", "json-pointer", "relative-json-pointer"}
)
WIDEST_MULTIPLES = 10_000
LARGEST_MULTIPLE = 1024

SUPPORT = Support(
    choosing=CHOOSING,
    by_type={
        "null": frozenset(),
        "boolean": frozenset(),
        "integer": BY_TYPE["integer"],
        "number": BY_TYPE["number"] - {"multipleOf"},
        "string": BY_TYPE["string"],
        "array": frozenset({"items", "prefixItems", "unevaluatedItems", "minItems", "maxItems"}),
        "object": BY_TYPE["object"] - {"dependentRequired", "dependentSchemas", "dependencies"},
    },
    formats=FORMATS,
)
UNTYPED = frozenset({"properties", "additionalProperties", "unevaluatedProperties"})
UNTYPED_ARRAY = frozenset({"items", "prefixItems", "unevaluatedItems"})


def check_schema(whole: Any) -> None:
    """Raise `Unsupported` for a schema that xgrammar would read as a weaker one."""
    check(whole, SUPPORT, _check_part)


def _check_part(schema: Schema, path: str) -> None:
    if schema.keys() & CHOOSING:
        return
    if "type" not in schema:
        _check_untyped(schema, path)
    if "string" in types(schema):
        _check_string(schema, path)
    if "integer" in types(schema) and "multipleOf" in schema:
        _check_multiple(schema, path)
    if "object" in types(schema):
        _check_object(schema, path)


def _check_untyped(schema: Schema, path: str) -> None:
    """Without a type the library reads an object or an array where it sees their keywords, else any value."""
    asserted = schema.keys() & frozenset().union(*BY_TYPE.values())
    if asserted and not asserted & (UNTYPED | UNTYPED_ARRAY):
        raise Unsupported(f"{path}: {sorted(asserted)[0]} without a type")


def _check_string(schema: Schema, path: str) -> None:
    said = [keyword for keyword in ("format", "pattern") if keyword in schema]
    if len(said) == 2 or (said and schema.keys() & {"minLength", "maxLength"}):
        raise Unsupported(f"{path}: {said[0]} beside another keyword for strings")
    if "pattern" in schema:
        searched(schema["pattern"])


def _check_multiple(schema: Schema, path: str) -> None:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    bounded = low is not None and high is not None and high - low < WIDEST_MULTIPLES - 2
    multiple = schema["multipleOf"]
    if not (bounded or (low is None and high is None)) or multiple != int(multiple) or multiple > LARGEST_MULTIPLE:
        raise Unsupported(f"{path}: multipleOf {multiple} within these bounds")


def _check_object(schema: Schema, path: str) -> None:
    declared = frozenset(schema.get("properties", {}))
    if undeclared := sorted(frozenset(schema.get("required", ())) - declared):
        raise Unsupported(f"{path}: the required property {undeclared[0]!r} is not declared")
    patterns = schema.get("patternProperties", {})
    if patterns and (declared or len(patterns) > 1 or schema.get("additionalProperties") is not False):
        raise Unsupported(f"{path}: patternProperties beside other properties")
    for pattern in patterns:
        searched(pattern)
    if "propertyNames" in schema and (declared or patterns):
        raise Unsupported(f"{path}: propertyNames beside declared properties")
