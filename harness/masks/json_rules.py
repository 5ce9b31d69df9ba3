"""The part of JSON Schema that the reference engine takes, as the rules of a grammar.

Taken: `type`, `enum`, `const`, `anyOf`, `oneOf` of plainly different branches, `$ref` inside the schema (recursion
too), objects (`properties` in the order of the schema, `required`, `additionalProperties`), arrays (`items`,
`minItems`, `maxItems`), strings (`minLength`, `maxLength`, `pattern`), numbers with bounds, `format` names that say
nothing of the text. Everything else that asserts is `Unsupported`. Each value has its usual spellings only: whole
numbers without fraction or exponent, bounded numbers without exponent, properties in the order of the schema. So what
the reference allows is valid; what it forbids may still be valid in another order or spelling.
"""

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import jsonschema

from harness.errors import Unsupported
from harness.expression import Concat, Either, Expression, Repeat, Rule, concat, either, literal
from harness.grammar import Rules
from harness.json_formats import ANNOTATIONS
from harness.masks.json_keywords import TYPES, Schema, check_apart, followed, resolve, types
from harness.masks.json_numbers import Bounds, number
from harness.masks.json_text import key_but, quoted, space, string, value
from harness.regexes import searched

SILENT_WORDS = "$schema $id $comment $defs definitions title description default examples deprecated readOnly writeOnly"
REFUSED_WORDS = """
    allOf not if then else dependentSchemas dependentRequired dependencies patternProperties propertyNames
    minProperties maxProperties unevaluatedProperties unevaluatedItems uniqueItems contains minContains maxContains
    prefixItems additionalItems multipleOf $dynamicRef $recursiveRef $anchor $dynamicAnchor $vocabulary
"""
SILENT = frozenset(SILENT_WORDS.split())
REFUSED = frozenset(REFUSED_WORDS.split())


def json_rules(schema: str, flexible: bool) -> Rules:
    """The rules whose `root` derives the JSON texts that meet `schema`. `flexible` allows bounded white space between
    tokens. Raises `Unsupported` for what is not taken."""
    return _Builder(json.loads(schema, parse_float=Decimal), flexible).rules


class _Builder:
    """Writes one rule for each part of the schema that refers to others."""

    def __init__(self, whole: Any, flexible: bool) -> None:
        self._whole = whole
        self._gap = Rule("gap")
        self.rules: dict[str, Expression] = {"gap": space(flexible)}
        self.rules["root"] = self._at("#")

    def _at(self, pointer: str) -> Rule:
        """The rule for the part of the schema at a JSON pointer."""
        if pointer not in self.rules:
            self.rules[pointer] = Rule(pointer)
            self.rules[pointer] = self._schema(resolve(self._whole, pointer), pointer)
        return Rule(pointer)

    def _schema(self, schema: Any, path: str) -> Expression:
        if isinstance(schema, bool):
            return self._schema({}, path) if schema else Either(())
        if refused := sorted(REFUSED & schema.keys()):
            raise Unsupported(f"{path}: {refused[0]}")
        asserted = schema.keys() - SILENT
        match schema:
            case {"$ref": str(pointer)}:
                _alone("$ref", asserted, path)
                return self._at(pointer)
            case {"enum": list(values)}:
                return self._values(values, schema, path)
            case {"const": wanted}:
                return self._values([wanted], schema, path)
            case {"anyOf": list(branches)}:
                _alone("anyOf", asserted, path)
                return either([self._at(f"{path}/anyOf/{i}") for i in range(len(branches))])
            case {"oneOf": list(branches)}:
                _alone("oneOf", asserted, path)
                check_apart([followed(self._whole, branch) for branch in branches], path)
                return either([self._at(f"{path}/oneOf/{i}") for i in range(len(branches))])
        return either([self._typed(kind, schema, path) for kind in _types(schema, path)])

    def _values(self, values: Sequence[object], schema: Schema, path: str) -> Expression:
        if "$ref" in schema or "anyOf" in schema or "oneOf" in schema:
            raise Unsupported(f"{path}: enum or const beside $ref, anyOf or oneOf")
        plain = json.loads(json.dumps(schema, default=float))
        valid = jsonschema.Draft202012Validator(plain).is_valid
        return Either(tuple(value(v, self._gap) for v in json.loads(json.dumps(values, default=float)) if valid(v)))

    def _typed(self, kind: str, schema: Schema, path: str) -> Expression:
        match kind:
            case "null":
                return literal("null")
            case "boolean":
                return either([literal("true"), literal("false")])
            case "integer" | "number":
                return number(_bounds(schema), whole=kind == "integer")
            case "string":
                return _string(schema, path)
            case "array":
                return self._array(schema, path)
            case _:
                return self._object(schema, path)

    def _array(self, schema: Schema, path: str) -> Expression:
        least, most = int(schema.get("minItems", 0)), schema.get("maxItems")
        if isinstance(schema.get("items"), list):
            raise Unsupported(f"{path}: a list of items")
        item = self._at(f"{path}/items") if "items" in schema else self._anything()
        more = Repeat(
            concat(literal(","), self._gap, item, self._gap),
            max(least - 1, 0),
            None if most is None else max(int(most) - 1, 0),
        )
        filled = concat(item, self._gap, more)
        inside = [filled] if most != 0 else []
        return concat(literal("["), self._gap, Either((*([Concat(())] if least == 0 else []), *inside)), literal("]"))

    def _object(self, schema: Schema, path: str) -> Expression:
        declared = {name: self._at(f"{path}/properties/{_pointed(name)}") for name in schema.get("properties", {})}
        required = schema.get("required", [])
        others = self._others(schema, path)
        members = declared | {name: others for name in required if name not in declared}
        inside = self._members(list(members.items()), frozenset(required), others, path)
        return concat(literal("{"), self._gap, inside, literal("}"))

    def _others(self, schema: Schema, path: str) -> Expression:
        """What a property may be that is not declared."""
        return self._at(f"{path}/additionalProperties") if "additionalProperties" in schema else self._anything()

    def _members(
        self, members: list[tuple[str, Expression]], required: frozenset[str], others: Expression, path: str
    ) -> Expression:
        """From the last property to the first: what may follow it, and that with a comma before."""
        other = concat(key_but([name for name, _ in members]), self._colon(), others, self._gap)
        first: Expression = Either((Concat(()), concat(other, Repeat(self._next(other), 0, None))))
        later: Expression = Repeat(self._next(other), 0, None)
        for i, (name, expression) in reversed(list(enumerate(members))):
            member = concat(value(name, self._gap), self._colon(), expression, self._gap)
            skip_first, skip_later = ([], []) if name in required else ([first], [later])
            first = Either((concat(member, later), *skip_first))
            later = Either((concat(self._next(member), later), *skip_later))
            first, later = self._named(f"{path} first {i}", first), self._named(f"{path} later {i}", later)
        return first

    def _colon(self) -> Expression:
        return concat(self._gap, literal(":"), self._gap)

    def _next(self, member: Expression) -> Expression:
        return concat(literal(","), self._gap, member)

    def _named(self, name: str, expression: Expression) -> Expression:
        self.rules[name] = expression
        return Rule(name)

    def _anything(self) -> Expression:
        if "anything" not in self.rules:
            self.rules["anything"] = Rule("anything")
            self.rules["anything"] = self._schema({}, "anything")
        return Rule("anything")


def _string(schema: Schema, path: str) -> Expression:
    if schema.get("format") is not None and schema["format"] not in ANNOTATIONS:
        raise Unsupported(f"{path}: the format {schema['format']!r}")
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if "pattern" not in schema:
        return string(int(least), None if most is None else int(most))
    if least or most is not None:
        raise Unsupported(f"{path}: a pattern together with a length")
    return quoted(searched(schema["pattern"]))


def _bounds(schema: Schema) -> Bounds:
    """The tighter one where a bound is there both with its end and without."""
    if any(isinstance(schema.get(keyword), bool) for keyword in ("exclusiveMinimum", "exclusiveMaximum")):
        raise Unsupported("exclusiveMinimum or exclusiveMaximum as in draft 4")
    lows = [(Decimal(schema[k]), out) for k, out in (("minimum", False), ("exclusiveMinimum", True)) if k in schema]
    highs = [(-Decimal(schema[k]), out) for k, out in (("maximum", False), ("exclusiveMaximum", True)) if k in schema]
    low, low_out = max(lows, default=(None, False))
    high, high_out = max(highs, default=(None, False))
    return Bounds(low, None if high is None else -high, low_out, high_out)


def _types(schema: Schema, path: str) -> list[str]:
    """The types, each once: whole numbers are numbers too."""
    kinds = types(schema)
    if unknown := [kind for kind in kinds if kind not in TYPES]:
        raise Unsupported(f"{path}: the type {unknown[0]!r}")
    return [kind for kind in kinds if not (kind == "integer" and "number" in kinds)]


def _alone(keyword: str, asserted: set[str], path: str) -> None:
    if beside := sorted(asserted - {keyword}):
        raise Unsupported(f"{path}: {keyword} beside {beside[0]}")


def _pointed(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
