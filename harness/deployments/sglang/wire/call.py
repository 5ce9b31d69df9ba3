"""One HTTP exchange as values: what to send, and what came of it."""

from typing import Literal

import msgspec

from harness.deployments.sglang.wire.stream import AnswerStream


class Call(msgspec.Struct, frozen=True):
    """A request to make after `wait_s` seconds. With `streamed`, a successful answer is read as server-sent events."""

    method: Literal["GET", "POST"]
    path: str
    body: bytes | None = None
    streamed: bool = False
    wait_s: float = 0.0


class Reply(msgspec.Struct, frozen=True):
    """A whole HTTP response. `headers` have lower-case names. `stream` is what a streamed answer added up to, `body`
    any other answer's bytes. `sent_s` is the instant of sending, `done_s` the seconds from then to the last byte."""

    status: int
    headers: dict[str, str]
    body: bytes
    stream: AnswerStream | None
    sent_s: float
    done_s: float


class Lost(msgspec.Struct, frozen=True):
    """No whole response: `timeout` after waiting long enough, `connection` where it could not be made or broke."""

    kind: Literal["timeout", "connection"]
    message: str


Outcome = Reply | Lost
