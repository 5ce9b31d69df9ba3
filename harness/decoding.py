"""From plain values to frozen objects, strictly: what is wrong is a `ConfigError` that names its path."""

import re
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from harness.errors import ConfigError

T = TypeVar("T")

_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]|\[\.\.\.\]")
"""One step of a path: a key, a place, or any of either."""


def decoded(plain: Any, wanted: type[T], file: str) -> T:
    """`plain` as a `wanted`; `file` is where its keys stand. Raises `ConfigError`."""
    try:
        return msgspec.convert(plain, wanted, strict=True)
    except msgspec.ValidationError as error:
        raise _mistake(str(error), plain, wanted, file) from None


def _mistake(message: str, plain: Any, wanted: Any, file: str) -> ConfigError:
    """What msgspec says of a value, with the value that was found."""
    match = re.fullmatch(r"(.*?)(?: - at `(.*)`)?", message, re.DOTALL)
    assert match is not None
    said, path = match.group(1), (match.group(2) or "$").removeprefix("$")
    expected = re.fullmatch(r"Expected (.*?)(?:, got `(.*)`)?", said)
    if expected is None:
        where = path.replace("[...]", ".*").removeprefix(".") or "config"
        if choices := list(dict.fromkeys(map(str, _choices(inspect.type_info(wanted), path)))):
            return ConfigError(f"{where}: {said}", f"one of {', '.join(choices)}", "mend this key")
        return ConfigError(f"{where}: {said}", f"see {file}", "mend this key")
    kind = f" ({expected.group(2)})" if expected.group(2) else ""
    found = " or ".join(f"{where or 'config'}: {value!r}" for where, value in _at(path, plain, ""))
    return ConfigError(f"{found}{kind}", expected.group(1).replace("`", ""), "mend this key")


def _at(path: str, value: Any, where: str) -> Iterator[tuple[str, Any]]:
    """The places and values that a path like `.task.sections[0].name` can mean; msgspec writes `[...]` for any key."""
    match = _STEP.match(path)
    if match is None:
        yield where.removeprefix("."), value
        return
    rest, (name, index) = path[match.end() :], match.groups()
    if index is not None:
        yield from _at(rest, value[int(index)], f"{where}[{index}]")
    elif isinstance(value, dict):
        for key in [name] if name is not None else value:
            if key in value:
                yield from _at(rest, value[key], f"{where}.{key}")


def _choices(kind: inspect.Type, path: str) -> Iterator[Any]:
    """The values that a type names at a path, if it names them: those of a `Literal`, or the tags of a union."""
    match = _STEP.match(path)
    rest, name = (path[match.end() :], match.group(1)) if match else ("", None)
    match kind:
        case inspect.UnionType(types=types):
            for one in types:
                yield from _choices(one, path)
        case inspect.LiteralType(values=values) if not path:
            yield from values
        case inspect.StructType(tag_field=str(tag_field), tag=tag) if tag_field == name:
            yield tag
        case inspect.StructType(fields=fields):
            for field in fields:
                if field.encode_name == name:
                    yield from _choices(field.type, rest)
        case inspect.DictType(value_type=inner) | inspect.VarTupleType(item_type=inner) if path:
            yield from _choices(inner, rest)
