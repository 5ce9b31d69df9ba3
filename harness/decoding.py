"""From plain values to frozen objects, strictly: what is wrong is a `ConfigError` that names its path."""

import re
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from harness.errors import ConfigError

T = TypeVar("T")


def decoded(plain: Any, wanted: type[T], file: str) -> T:
    """`plain` as a `wanted`; `file` is where its keys stand. Raises `ConfigError`."""
    try:
        return msgspec.convert(plain, wanted, strict=True)
    except msgspec.ValidationError as error:
        raise _mistake(str(error), plain, file) from None


def _mistake(message: str, plain: Any, file: str) -> ConfigError:
    """What msgspec says of a value, with the value that was found."""
    match = re.fullmatch(r"(.*?)(?: - at `(.*)`)?", message, re.DOTALL)
    assert match is not None
    said, path = match.group(1), (match.group(2) or "$").removeprefix("$")
    expected = re.fullmatch(r"Expected (.*?)(?:, got `(.*)`)?", said)
    if expected is None:
        where = path.replace("[...]", ".*").removeprefix(".") or "config"
        return ConfigError(f"{where}: {said}", f"see {file}", "mend this key")
    kind = f" ({expected.group(2)})" if expected.group(2) else ""
    found = " or ".join(f"{where or 'config'}: {value!r}" for where, value in _at(path, plain, ""))
    return ConfigError(f"{found}{kind}", expected.group(1).replace("`", ""), "mend this key")


def _at(path: str, value: Any, where: str) -> Iterator[tuple[str, Any]]:
    """The places and values that a path like `.task.sections[0].name` can mean; msgspec writes `[...]` for any key."""
    match = re.match(r"\.([^.\[]+)|\[(\d+)\]|\[\.\.\.\]", path)
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
