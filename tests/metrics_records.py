"""Records and columns made by hand for the tests of metrics."""

from collections.abc import Sequence
from typing import Any

from harness.metrics.columns import Arm, from_slims
from harness.record import Part, Record, Slim
from harness.request import Completion, Cost, Timing, Trace

VALUES: dict[str, Any] = {
    "arm": "none", "example": "e0", "block": 0, "session": 0, "outcome": "valid", "right": True, "score": 1.0,
    "label_confidence": 0.8, "path_confidence": 0.7, "raw_confidence": 0.6, "mass": None, "forced": None, "tokens": 11,
    "prompt_tokens": 5, "cached_tokens": None, "sent_s": 100.0, "ttft_s": 0.1, "e2e_s": 1.1, "tpot_s": 0.1,
    "cost": Cost(),
}  # fmt: skip


def slim(**changed: Any) -> Slim:
    """A right and valid answer, but for what is given; its own cluster."""
    values = VALUES | changed
    return Slim(**({"cluster": values["example"]} | values))


def slims(count: int, **columns: Sequence[Any] | Any) -> list[Slim]:
    """`count` records of examples e0, e1 ...; a list or tuple gives a value to each, anything else to all."""
    values = [{k: v[i] if isinstance(v, list) else v for k, v in columns.items()} for i in range(count)]
    return [slim(**({"example": f"e{i}"} | given)) for i, given in enumerate(values)]


def arm(records: Sequence[Slim]) -> Arm:
    """The columns of the one arm of these records."""
    (only,) = from_slims(records).arms.values()
    return only


def whole(record: Slim, trace: Trace | None, token_ids: Sequence[int] = (), **changed: Any) -> Record:
    """The record of a slim one, with one constrained part."""
    times = tuple(0.1 * (place + 1) for place in range(len(token_ids)))
    timing = Timing(record.sent_s, 0.1, 1.1, times)
    said = Completion("r", "text", tuple(token_ids), "stop", timing, 5, len(token_ids), None, trace)
    extra = {"text": "text", "answer": None, "gold": None, "reason": "", "labels": None, "constraint": None}
    fields = {name: getattr(record, name) for name in record.__struct_fields__}
    return Record(**(fields | extra | {"parts": (Part("answer", True, said),)} | changed))
