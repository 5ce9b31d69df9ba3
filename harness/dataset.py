"""Rows of a task, read through `datasets`: a hub name, a local folder and a local file work the same.

Every row gets a stable id (a column, or a hash of its content), never its position, so that a resumed run and a
comparison of two runs pair the same examples even where the order differs.
"""

import hashlib
import json
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from harness.errors import DataError

PROJECT = Path(__file__).resolve().parent.parent
LOADERS = {".jsonl": "json", ".json": "json", ".csv": "csv", ".parquet": "parquet"}


class Data(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the rows are, and which columns mean what.

    `path` is a hub name, a folder or a file; a relative path is looked for in the working folder, then in the
    project's own folder. `name` is the configuration of a hub dataset, `revision` its commit. `gold` is the column of
    right answers; `gold_pattern` a regex whose first group is taken from it. `cluster` names examples that belong
    together (questions on one text), for intervals. `where` keeps the rows whose columns have these values. `limit`
    keeps so many rows, drawn with the run's seed; 0 keeps all in their order.
    """

    path: str
    split: str = "test"
    gold: str | None = None
    id: str | None = None
    cluster: str | None = None
    name: str | None = None
    revision: str | None = None
    gold_pattern: str | None = None
    where: dict[str, Any] = {}
    limit: Annotated[int, msgspec.Meta(ge=0)] = 0


class Row(msgspec.Struct, frozen=True):
    """One example: its columns as they are, and the right answer (None: unlabelled)."""

    id: str
    cluster: str
    columns: dict[str, Any]
    gold: Any


class Rows(msgspec.Struct, frozen=True):
    """The examples of a task, their digest (SHA-256 of ids and content, 16 hex digits) and what a reader should
    know."""

    rows: tuple[Row, ...]
    digest: str
    notes: tuple[str, ...] = ()


def find(path: str) -> Path | None:
    """`path` in the working folder, else in the project's own folder; None where it is in neither."""
    for base in (Path.cwd(), PROJECT):
        if (base / path).exists():
            return (base / path).resolve()
    return None


def read_text(path: str, what: str) -> str:
    """The text of a file of a task. Raises `DataError` where there is none."""
    found = find(path)
    if found is None or not found.is_file():
        raise _no_file(what, path)
    return found.read_text(encoding="utf-8")


def _no_file(what: str, path: str) -> DataError:
    places = " or ".join(dict.fromkeys((str(Path.cwd()), str(PROJECT))))
    return DataError(f"{what}: no file {path!r}", f"a file; relative paths start at {places}", "mend the path")


def load(data: Data, seed: int) -> Rows:
    """Read the rows. Raises `DataError` for a missing source or column, a doubled id, a label out of range, or a set
    without a single right answer where `gold` is named."""
    table = _load_table(data)
    _check_columns(data, table.column_names)
    golds = [_gold(data, table.features, row, number) for number, row in enumerate(table)]
    rows = [_row(data, row, gold) for row, gold in zip(table, golds, strict=True)]
    kept = [row for row in rows if all(row.columns.get(name) == value for name, value in data.where.items())]
    _check_rows(data, kept)
    if 0 < data.limit < len(kept):
        chosen = set(random.Random(seed).sample(range(len(kept)), data.limit))
        kept = [row for number, row in enumerate(kept) if number in chosen]
    return Rows(tuple(kept), _digest(kept), _notes(data, table.features))


def _load_table(data: Data) -> Any:
    import datasets

    datasets.disable_progress_bars()
    found = find(data.path)
    file = _file(data, found)
    try:
        if file is not None:
            return datasets.load_dataset(LOADERS[file.suffix], data_files={data.split: str(file)}, split=data.split)
        source = str(found) if found is not None else data.path
        return datasets.load_dataset(source, name=data.name, split=data.split, revision=data.revision)
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        here = "" if found is not None else "no folder or file here, and of the hub: "
        found_text = f"data.path: {data.path!r}, split {data.split!r}: {here}{_first_line(error.__cause__ or error)}"
        raise DataError(found_text, "a dataset of the hub, a folder or a file", "mend the path or the split") from error


def _file(data: Data, found: Path | None) -> Path | None:
    """The file that holds the rows; None where `datasets` itself has to look (a folder of another layout, the hub)."""
    if found is None and Path(data.path).suffix in LOADERS:
        raise _no_file("data.path", data.path)
    if found is None:
        return None
    file = found if found.is_file() else _split_file(found, data.split)
    if file is not None and file.suffix not in LOADERS:
        raise DataError(f"data.path: {file.name!r}", f"a file ending in {sorted(LOADERS)}", "convert the file")
    if file is not None and not file.read_bytes().strip():
        raise DataError(f"data.path: {str(file)!r} is empty", "at least one row", "mend the path or the file")
    return file


def _split_file(folder: Path, split: str) -> Path | None:
    """The file of a folder that is named after the split; other files of a task folder are not rows."""
    return next((folder / f"{split}{end}" for end in LOADERS if (folder / f"{split}{end}").is_file()), None)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _check_columns(data: Data, columns: Sequence[str]) -> None:
    for key, column in {"gold": data.gold, "id": data.id, "cluster": data.cluster}.items():
        if column is not None and column not in columns:
            raise DataError(f"data.{key}: no column {column!r}", f"one of {sorted(columns)}", "mend the column's name")
    if missing := sorted(set(data.where) - set(columns)):
        raise DataError(f"data.where: no column {missing[0]!r}", f"one of {sorted(columns)}", "mend the column's name")


def _row(data: Data, columns: Mapping[str, Any], gold: Any) -> Row:
    named = str(columns[data.id]) if data.id is not None else _content_id(columns)
    cluster = str(columns[data.cluster]) if data.cluster is not None else named
    return Row(named, cluster, dict(columns), gold)


def _content_id(columns: Mapping[str, Any]) -> str:
    return hashlib.sha256(_canonical(columns)).hexdigest()[:16]


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str).encode()


def _gold(data: Data, features: Any, row: Mapping[str, Any], number: int) -> Any:
    """The right answer of a row; None where it has none (a missing value, or a negative class)."""
    if data.gold is None or row[data.gold] is None:
        return None
    value = row[data.gold]
    names = getattr(features[data.gold], "names", None)
    if names is not None:
        return _class_name(value, names, data.gold, number)
    if data.gold_pattern is not None:
        return _from_pattern(str(value), data.gold_pattern, number)
    return _without_nulls(value) if _is_arrow_struct(features[data.gold]) else value


def _class_name(value: int, names: Sequence[str], column: str, number: int) -> str | None:
    if value < 0:
        return None
    if value >= len(names):
        raise DataError(f"data: row {number}: {column} is {value}", f"a class below {len(names)}", "mend the data")
    return names[value]


def _from_pattern(value: str, pattern: str, number: int) -> str:
    match = re.search(pattern, value)
    if match is None or not match.groups():
        found = f"data: row {number}: gold_pattern {pattern!r} finds no group in {value[:80]!r}"
        raise DataError(found, "a pattern whose first group is the right answer", "mend data.gold_pattern")
    return match.group(1)


def _is_arrow_struct(feature: Any) -> bool:
    return isinstance(feature, dict | list) or type(feature).__name__ in {"List", "LargeList", "Sequence"}


def _without_nulls(value: Any) -> Any:
    """Arrow gives every row of a struct column all fields; those that a row never had come back as None."""
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part) for part in value]
    return value


def _check_rows(data: Data, rows: Sequence[Row]) -> None:
    if not rows:
        raise DataError(f"data.path: {data.path!r} has no rows", "at least one", "mend the path, split or data.where")
    seen: set[str] = set()
    for row in rows:
        if row.id in seen:
            fix = "name another id column" if data.id else "remove the doubled row, or name an id column"
            raise DataError(f"data: the id {row.id!r} stands twice", "ids that differ", fix)
        seen.add(row.id)
    if data.gold is not None and all(row.gold is None for row in rows):
        found = f"data.gold: no row of split {data.split!r} has a value in {data.gold!r}"
        raise DataError(found, "right answers", "use a labelled split, or leave data.gold out")


def _digest(rows: Iterable[Row]) -> str:
    """Equal for the same examples in any order."""
    lines = sorted(_canonical([row.id, row.columns, row.gold]) for row in rows)
    return hashlib.sha256(b"\n".join(lines)).hexdigest()[:16]


def _notes(data: Data, features: Any) -> tuple[str, ...]:
    if data.gold is not None and _is_arrow_struct(features[data.gold]):
        return (f"column {data.gold!r}: nulls count as absent (a column of structs cannot tell them apart)",)
    return ()
