"""One call of the client, sent until there is an answer or no more attempts are worth it."""

from collections.abc import Callable, Generator
from typing import Any, TypeVar

import msgspec

from harness.deployments.sglang.wire.answer import read_object
from harness.deployments.sglang.wire.call import Call, Lost, Outcome, Reply
from harness.deployments.sglang.wire.errors import Fault, read_denial, read_lost, read_refusal
from harness.deployments.sglang.wire.retry import Retries

T = TypeVar("T")
Flow = Generator[Call, Outcome, T]
"""An operation, step by step: it yields what to send, is handed what came of it, and ends with a `T`."""


class Delivered(msgspec.Struct, frozen=True):
    """A response that is no refusal; `answer` is its JSON object."""

    reply: Reply
    answer: dict[str, Any]
    request_id: str
    attempts: int


def deliver(call: Callable[[str], Call], retries: Retries, new_id: Callable[[], str]) -> Flow[Delivered]:
    """Send `call` (made for a request id) until an answer comes. Each attempt has an id of its own, so that a late
    answer to an earlier one can never be taken for this one's. Raises a `BackendError`."""
    wait_s, attempt = 0.0, 0
    while True:
        attempt += 1
        request_id = new_id()
        outcome = yield msgspec.structs.replace(call(request_id), wait_s=wait_s)
        read = _read(outcome)
        if not isinstance(read, Fault):
            reply, answer = read
            return Delivered(reply, answer, request_id, attempt)
        pause = retries.wait_s(attempt, read.asked_s) if read.transient else None
        if pause is None:
            raise read.raised(attempt)
        wait_s = pause


def _read(outcome: Outcome) -> Fault | tuple[Reply, dict[str, Any]]:
    match outcome:
        case Lost():
            return read_lost(outcome)
        case Reply():
            if (refusal := read_refusal(outcome)) is not None:
                return refusal
            if outcome.stream is not None and not outcome.stream.whole:
                return Fault("the server closed the stream before its end")
            answer = read_object(outcome.body if outcome.stream is None else outcome.stream.last)
            return read_denial(answer) or (outcome, answer)
