"""One request of an arm for one example, what came back, and how it was judged: a line of `records.jsonl`.

Metrics read records and nothing else. `Record` is the whole line; `Slim` is the part that metrics read, decoded from
the same line without its traces.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from harness.request import Completion, Cost, Failure

T = TypeVar("T")

Outcome = Literal["valid", "invalid", "truncated", "stopped_early", "failed", "unsupported"]
"""`valid`: the oracle accepts the text. `invalid`: it ended by itself and the oracle rejects it. `truncated`: the
budget ended it. `stopped_early`: a stop string ended it. `failed`: no answer came back. `unsupported`: the engine
cannot express the constraint, so nothing was asked."""


class Part(msgspec.Struct, frozen=True):
    """One generated section of the answer: its name, whether the arm constrained it, and what came back."""

    section: str
    constrained: bool
    result: Completion | Failure


class Slim(msgspec.Struct, frozen=True):
    """What metrics need of one record.

    `right` is None for an unlabelled example; `score` is partial credit in [0, 1] and equals `right` where the task has
    none. `label_confidence`: unmasked probability of the label that was said, its end included, normalised over the
    labels. `path_confidence`: product of the masked probabilities of what was said in the constrained sections.
    `raw_confidence`: product of the unmasked ones. None is no confidence. `mass` is the product over the constrained
    tokens of the probability the mask kept; `forced` the share of them that were the only one allowed.
    `sent_s` is an instant, the other times are seconds; `tokens` and `prompt_tokens` are the deployment's usage counts.
    `block` numbers the interleaved blocks, `session` the processes of a resumed run, `order` the place in the session.
    """

    arm: str
    example: str
    cluster: str
    block: int
    session: int
    outcome: Outcome
    right: bool | None
    score: float | None
    label_confidence: float | None
    path_confidence: float | None
    raw_confidence: float | None
    mass: float | None
    forced: float | None
    tokens: int
    prompt_tokens: int
    cached_tokens: int | None
    sent_s: float
    ttft_s: float | None
    e2e_s: float | None
    tpot_s: float | None
    cost: Cost
    trivial: bool = False
    attempts: int = 1
    flags: tuple[str, ...] = ()
    """What a reader should know and no outcome says, e.g. `whitespace_run` or `format not checked: iri`."""


class Record(Slim, frozen=True, kw_only=True):
    """The whole line. `answer` and `gold` are JSON values; `reason` says why an answer is not valid or not there;
    `labels` are the normalised label probabilities of a label section; `constraint` is what was sent, as JSON."""

    text: str
    answer: Any
    gold: Any
    reason: str
    labels: dict[str, float] | None
    constraint: Any
    parts: tuple[Part, ...]


class Example(msgspec.Struct, frozen=True):
    """What was asked: a line of `examples.jsonl`, once for all arms. `notes` are rules applied to the prompt."""

    id: str
    cluster: str
    prompt: str
    prompt_ids: tuple[int, ...]
    gold: Any
    notes: tuple[str, ...] = ()


def read(path: Path) -> Iterator[Record]:
    """The whole records of a run, in file order. A torn last line (a killed run) is left out."""
    return _lines(path, msgspec.json.Decoder(Record))


def read_slim(path: Path) -> Iterator[Slim]:
    """The same records without text and traces: about ten times faster."""
    return _lines(path, msgspec.json.Decoder(Slim))


def read_examples(path: Path) -> Iterator[Example]:
    """The lines of `examples.jsonl`."""
    return _lines(path, msgspec.json.Decoder(Example))


class Journal:
    """Appends lines to a file, each flushed to the disk as it comes. Opening cuts a torn last line off."""

    def __init__(self, path: Path) -> None:
        keep = whole_bytes(path)
        self._file = path.open("ab", buffering=0)
        self._file.truncate(keep)
        self._encoder = msgspec.json.Encoder()

    def write(self, line: msgspec.Struct) -> None:
        """Append one line; raises OSError (disk full) with nothing of the line left behind."""
        before = os.fstat(self._file.fileno()).st_size
        left = memoryview(self._encoder.encode(line) + b"\n")
        try:
            while left:
                left = left[self._file.write(left) or 0 :]
            os.fsync(self._file.fileno())
        except OSError:
            os.ftruncate(self._file.fileno(), before)
            raise

    def close(self) -> None:
        self._file.close()


def whole_bytes(path: Path) -> int:
    """How many bytes of `path` are whole lines; 0 where there is no file."""
    if not path.exists():
        return 0
    data = path.read_bytes()
    return data.rfind(b"\n") + 1


def _lines(path: Path, decoder: "msgspec.json.Decoder[T]") -> Iterator[T]:
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield decoder.decode(line)
