"""The judge of JSON answers: two independent validators of JSON Schema, with formats checked.

jsonschema (Python) and jsonschema-rs (Rust) both have to accept. Where they differ the answer is not called valid and
the difference is shown. Draft 2020-12 unless the schema names another with `$schema`.
"""

import json
import math
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NoReturn, cast

import jsonschema
from jsonschema.validators import validator_for

from harness.constraint import Verdict
from harness.errors import ConstraintError
from harness.json_formats import ANNOTATIONS

FORMATS = jsonschema.Draft202012Validator.FORMAT_CHECKER

Valid = Callable[[Any], bool]


def check_schema(schema: str) -> None:
    """Raise `ConstraintError` for a schema that is not JSON, not a schema, or that no value can meet."""
    if not schema.strip():
        raise ConstraintError("json_schema: the schema is empty", "a JSON schema", "write one, or use no constraint")
    try:
        parsed = json.loads(schema)
    except json.JSONDecodeError as error:
        raise ConstraintError(f"json_schema: not JSON: {error}", "a JSON schema", "mend the text") from None
    if not isinstance(parsed, dict | bool):
        raise ConstraintError(
            f"json_schema: found {parsed!r}", "an object, true or false", "write a JSON schema"
        ) from None
    if why := _unsatisfiable(parsed, "$"):
        raise ConstraintError(f"json_schema: unsatisfiable, {why}", "a schema that some value meets", "mend that part")
    try:
        validator_for(parsed, default=jsonschema.Draft202012Validator).check_schema(cast(Any, parsed))
        _validators(schema)
    except (jsonschema.SchemaError, ValueError) as error:
        message = str(error).splitlines()[0]
        raise ConstraintError(f"json_schema: not a schema: {message}", "a JSON schema", "mend that part") from None


def judge_json(schema: str, text: str) -> Verdict:
    """Whether `text` is one JSON value that both validators accept."""
    python, rust, unchecked = _validators(schema)
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
        first, second = python(value), rust(value)
    except UnicodeEncodeError:
        return Verdict(False, "a string holds half a surrogate pair")
    except RecursionError:
        return Verdict(False, "nested too deeply to be judged")
    except ValueError as error:
        return Verdict(False, f"not JSON: {error}")
    if first != second:
        return Verdict(
            False,
            "the validators disagree",
            f"jsonschema says {first}, jsonschema-rs says {second}",
            unchecked,
        )
    return Verdict(first, "" if first else "the value does not meet the schema", "", unchecked)


@lru_cache(maxsize=4096)
def _validators(schema: str) -> tuple[Valid, Valid, tuple[str, ...]]:
    import jsonschema_rs  # here, because engines that need only the names below run where it is not installed

    parsed = json.loads(schema)
    kind = validator_for(parsed, default=jsonschema.Draft202012Validator)
    python = kind(parsed, format_checker=kind.FORMAT_CHECKER)
    rust = jsonschema_rs.validator_for(parsed, validate_formats=True)
    known = frozenset(kind.FORMAT_CHECKER.checkers) | ANNOTATIONS
    unchecked = tuple(sorted(set(_formats(parsed)) - known))
    return python.is_valid, rust.is_valid, unchecked


def _formats(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("format"), str):
            yield schema["format"]
        for part in schema.values():
            yield from _formats(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _formats(part)


def _unsatisfiable(schema: object, path: str) -> str:
    """Why no value can meet `schema`, as far as that is plain to see; empty where it is not."""
    if schema is False:
        return f"{path} is false"
    if not isinstance(schema, dict):
        return ""
    if schema.get("enum") == []:
        return f"{path}.enum is empty"
    options = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(options, list) and options:
        reasons = [_unsatisfiable(option, f"{path}.anyOf[{i}]") for i, option in enumerate(options)]
        if all(reasons):
            return reasons[0]
    properties, required = schema.get("properties"), schema.get("required")
    if schema.get("type") == "object" and isinstance(properties, dict) and isinstance(required, list):
        for name in required:
            if why := _unsatisfiable(properties.get(name, {}), f"{path}.properties.{name}"):
                return why
    return ""


def _finite(text: str) -> float:
    """A number that no double holds stands as the largest one: it is a number, and beyond any bound."""
    value = float(text)
    return math.copysign(sys.float_info.max, value) if math.isinf(value) else value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


if "date-time" not in FORMATS.checkers:  # pragma: no cover - a broken installation
    raise ConstraintError(
        "json_schema: jsonschema cannot check the format date-time here",
        "the extra jsonschema[format-nongpl]",
        "pip install 'jsonschema[format-nongpl]'",
    )
