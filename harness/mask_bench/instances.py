"""What is walked: constraints with texts that are known to be valid or not, from MaskBench's files."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.constraint import Constraint, json_schema
from harness.errors import DataError

PATHOLOGIES = "pathologies"


class Case(msgspec.Struct, frozen=True):
    """One text and whether the constraint allows it."""

    text: str
    valid: bool


class Budget(msgspec.Struct, frozen=True):
    """What a constraint may cost before it is called slow: compiling, and the dearest mask, in processor seconds."""

    compile_s: float = 1.0
    mask_s: float = 0.01


class Instance(msgspec.Struct, frozen=True):
    """One constraint with its texts. Those of the pathology set have a budget."""

    id: str
    constraint: Constraint
    cases: tuple[Case, ...]
    budget: Budget | None = None


def read(sources: Sequence[str], first: int | None = None) -> tuple[Instance, ...]:
    """The instances of all sources, at most `first` of each. Raises `DataError`."""
    from harness.mask_bench.pathologies import pathologies

    found = [i for source in sources for i in (pathologies() if source == PATHOLOGIES else _file(Path(source)))[:first]]
    ids = [instance.id for instance in found]
    if doubled := next((one for one in ids if ids.count(one) > 1), None):
        raise DataError(f"data: {doubled!r} stands more than once", "ids that differ", "name each source once")
    return tuple(found)


def digest(instances: Sequence[Instance]) -> str:
    """Equal for equal instances (SHA-256, 16 hex digits)."""
    return hashlib.sha256(msgspec.json.encode(instances)).hexdigest()[:16]


def _file(path: Path) -> list[Instance]:
    if not path.exists():
        raise DataError(
            f"data: {path} does not exist", "a .jsonl file, a folder of .json files, or pathologies", "mend"
        )
    found = list(_folder(path) if path.is_dir() else _lines(path))
    if not found:
        raise DataError(f"data: no schema in {path}", '{"schema": ..., "tests": [{"valid": ..., "data": ...}]}', "mend")
    return found


def _folder(path: Path) -> Iterator[Instance]:
    """A file a schema; a folder that holds one .jsonl file is that file."""
    for file in sorted(path.rglob("*.json")):
        yield _instance(file.read_text(encoding="utf-8"), str(file.relative_to(path).with_suffix("")), str(file))
    for file in sorted(path.rglob("*.jsonl")):
        yield from _lines(file)


def _lines(path: Path) -> Iterator[Instance]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip():
            yield _instance(line, f"{path.stem}:{number}", f"{path}:{number}")


def _instance(text: str, name: str, where: str) -> Instance:
    """Instances are written as MaskBench writes them: `json.dumps` without escapes, a space after commas and colons."""
    try:
        found: dict[str, Any] = json.loads(text)
        schema, tests = found["schema"], found.get("tests", [])
        cases = tuple(Case(json.dumps(test["data"], ensure_ascii=False), bool(test["valid"])) for test in tests)
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise DataError(f"data: {where}: {reason}", "a schema and tests with valid and data", "mend it") from None
    return Instance(str(found.get("id", name)), json_schema(schema), cases)
