"""The part of records that columns do not hold: traces, token times, label probabilities. Read for a sample.

A trace is many times the size of the rest of a record, so over many records only those of some examples are read: the
same for every arm, chosen by a hash of the example's id.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from zlib import crc32

import msgspec

from harness.record import Outcome

Line = tuple[Callable[[str], str], bytes]
"""What an arm is called in the report, given its name in the record; and the line of the record."""


class Trace(msgspec.Struct, frozen=True):
    """As `harness.request.Trace`."""

    raw_logprob: list[float | None]
    masked_logprob: list[float | None]
    mass: list[float | None]
    allowed: list[int | None]
    wanted: list[int | None]
    wanted_logprob: list[float | None]


class Times(msgspec.Struct, frozen=True):
    """As `harness.request.Timing`, the times of tokens alone."""

    token_s: list[float] = []


class Result(msgspec.Struct, frozen=True):
    """A completion, or with everything missing a failure."""

    token_ids: list[int] = []
    timing: Times | None = None
    trace: Trace | None = None


class Piece(msgspec.Struct, frozen=True):
    """As `harness.record.Part`."""

    constrained: bool
    result: Result


class Whole(msgspec.Struct, frozen=True):
    """A record without what columns hold."""

    arm: str
    example: str
    cluster: str
    block: int
    outcome: Outcome
    gold: Any
    labels: dict[str, float] | None
    parts: list[Piece]


class _Name(msgspec.Struct, frozen=True):
    example: str


def read_sample(lines: Iterable[Line], share: float) -> Iterator[Whole]:
    """The records of about this share of the examples, in file order; of all where `share` is 1."""
    peek, decoder = msgspec.json.Decoder(_Name), msgspec.json.Decoder(Whole)
    bound = int(share * 2**32)
    for called, line in lines:
        if share >= 1 or crc32(peek.decode(line).example.encode()) < bound:
            record = decoder.decode(line)
            yield msgspec.structs.replace(record, arm=called(record.arm))
