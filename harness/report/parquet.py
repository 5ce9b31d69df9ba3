"""`records.parquet`: the records as flat columns, for whoever wants to compute something else.

One row a record, in file order, without traces. Answers are JSON text; a missing value is null, and so are the instant
and the tokens of a request that brought no answer. Costs are the columns
`forward_s` to `rows`; units are in the names.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import pyarrow as pa
import pyarrow.parquet as pq

from harness.folder import writing
from harness.record import Slim
from harness.report.files import AGAIN
from harness.request import Cost

BATCH = 20_000


class Flat(Protocol):
    """A record as this table takes it: the fields of `Slim`, and `text`, `answer`, `gold` (JSON) and `reason`."""

    @property
    def cost(self) -> Cost: ...


_STRING, _FLOAT, _INT, _BOOL = pa.string(), pa.float64(), pa.int64(), pa.bool_()
_COST = {"forward_s": _FLOAT, "mask_s": _FLOAT, "wait_s": _FLOAT, "apply_s": _FLOAT, "compile_s": _FLOAT}
_COST_COLUMNS = _COST | {"steps": _INT, "rows": _FLOAT}
_JSON_COLUMNS = ("answer", "gold")
_NEVER_0 = ("sent_s", "tokens", "prompt_tokens")
"""A record has 0 there where no request was sent, or none came back."""
_TEXT_COLUMNS = ("text", *_JSON_COLUMNS, "reason")
_TYPES = {
    "block": _INT, "session": _INT, "right": _BOOL, "trivial": _BOOL, "tokens": _INT, "prompt_tokens": _INT,
    "cached_tokens": _INT, "attempts": _INT, "arm": _STRING, "example": _STRING, "cluster": _STRING, "outcome": _STRING,
    "flags": pa.list_(_STRING),
}  # fmt: skip
_SLIM_COLUMNS = tuple(name for name in Slim.__struct_fields__ if name != "cost")
SCHEMA = pa.schema(
    [
        *((name, _TYPES.get(name, _FLOAT)) for name in _SLIM_COLUMNS),
        *_COST_COLUMNS.items(),
        *((name, _STRING) for name in _TEXT_COLUMNS),
    ]
)


_COLUMNS = (*_SLIM_COLUMNS, *(f"cost.{name}" for name in _COST_COLUMNS), *_TEXT_COLUMNS)
_GETTERS = tuple(map(attrgetter, _COLUMNS))


class RecordTable:
    """Writes rows in batches; the file appears whole when the table is closed without an error. Raises
    `HarnessError` where it cannot be written."""

    def __init__(self, path: Path) -> None:
        self._path, self._draft = path, path.with_suffix(".parquet.tmp")
        self._rows: list[Any] = []

    def __enter__(self) -> Self:
        with self._writing():
            self._writer = pq.ParquetWriter(self._draft, SCHEMA, compression="zstd")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._flush()
            with self._writing():
                self._writer.close()
                if kind is None:
                    self._draft.replace(self._path)
        finally:
            self._draft.unlink(missing_ok=True)

    def add(self, row: Flat) -> None:
        """Append one record."""
        self._rows.append(row)
        if len(self._rows) >= BATCH:
            self._flush()

    def _flush(self) -> None:
        columns = (list(map(get, self._rows)) for get in _GETTERS)
        arrays = [_array(column, field) for column, field in zip(columns, SCHEMA, strict=True)]
        with self._writing():
            self._writer.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA))
        self._rows = []

    def _writing(self) -> AbstractContextManager[None]:
        return writing(self._path.name, AGAIN)


def _array(values: Sequence[Any], field: Any) -> Any:
    if field.name in _NEVER_0:
        return pa.array([value or None for value in values], field.type)
    if field.name not in _JSON_COLUMNS:
        return pa.array(values, field.type)
    texts = map(bytes, values)
    return pa.array([None if text == b"null" else text for text in texts], field.type)
