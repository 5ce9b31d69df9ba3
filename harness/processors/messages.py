"""What passes between the decoding loop and a worker, and how it is framed.

Small messages only: masks and logits lie in shared memory (`harness.processors.segment`), where each row has an index.
A frame is a little-endian uint32 length and that many bytes of msgpack. No sockets here.
"""

import struct
from collections.abc import Iterator

import msgspec

from harness.constraint import Constraint
from harness.request import FailureKind
from harness.vocabulary import Vocabulary


class EngineWork(msgspec.Struct, frozen=True, tag="engine"):
    """Make masks with a mask engine (`harness.masks.engine`)."""

    engine: str


class CallWork(msgspec.Struct, frozen=True, tag="call"):
    """Rewrite logits with the user's processors, made by the factory `call` (`package.module:factory`)."""

    call: str


Work = EngineWork | CallWork


class Setup(msgspec.Struct, frozen=True, tag="setup"):
    """The first message to a worker. `ahead`: the method is `async`, so what can be made before the logits are there
    is made at once. `timeout_s` bounds one call of the user's code."""

    work: Work
    ahead: bool
    timeout_s: float
    vocabulary: Vocabulary


class Row(msgspec.Struct, frozen=True, array_like=True):
    """One sequence's turn: the tokens that the worker does not know yet, and the row of shared memory to use."""

    key: int
    row: int
    tokens: tuple[int, ...]


class Open(msgspec.Struct, frozen=True, tag="open"):
    """A sequence begins. `tokens` is not empty where it began in a worker that is gone."""

    key: int
    row: int
    constraint: Constraint
    tokens: tuple[int, ...]


class Prepare(msgspec.Struct, frozen=True, tag="prepare"):
    """Make what needs no logits: masks (answered by `Done`), or the first part of an async generator (not answered)."""

    rows: tuple[Row, ...]


class Rewrite(msgspec.Struct, frozen=True, tag="rewrite"):
    """The logits lie in the rows: put new ones there (answered by `Done`)."""

    rows: tuple[Row, ...]


class Close(msgspec.Struct, frozen=True, tag="close"):
    """The sequence is over."""

    key: int


ToWorker = Setup | Open | Prepare | Rewrite | Close


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """The worker is ready: engine and user code are loaded."""


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """The worker cannot work at all: the three parts of a `harness.errors.HarnessError`."""

    found: str
    wanted: str
    fix: str


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """The constraint is compiled, or the user's processor made; it took `compile_s` (0.0: it was there already)."""

    key: int
    compile_s: float


class Made(msgspec.Struct, frozen=True, array_like=True, tag="made"):
    """A mask or new logits lie in the sequence's row; they follow `tokens` tokens and took `mask_s`."""

    key: int
    tokens: int
    mask_s: float


class Failed(msgspec.Struct, frozen=True, array_like=True, tag="failed"):
    """The sequence is lost; the worker is not."""

    key: int
    failure: FailureKind
    message: str


class Done(msgspec.Struct, frozen=True, tag="done"):
    """The answer to the rows of one message."""

    rows: tuple[Made | Failed, ...]


FromWorker = Hello | Refused | Opened | Done

_encoder = msgspec.msgpack.Encoder()
_LENGTH = struct.Struct("<I")


def frame(message: ToWorker | FromWorker) -> bytes:
    """One message as bytes for a stream."""
    payload = _encoder.encode(message)
    return _LENGTH.pack(len(payload)) + payload


class Frames:
    """Cuts a stream of bytes into the payloads of its frames."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The payloads that `data` completes."""
        self._bytes += data
        while len(self._bytes) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._bytes)[0]
            if len(self._bytes) < end:
                return
            yield bytes(self._bytes[_LENGTH.size : end])
            del self._bytes[:end]
