"""Every shape in which an SGLang server says no, read into one value.

Seen on 0.5.23: `{"error": "text"}`, `{"object": "error", "message": ...}`, `{"error": {"message": ...}}`,
`{"detail": ...}`, plain text; and, with HTTP 200, an `error` event in a stream, or an answer whose finish reason is
`abort`.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from harness.deployments.sglang.faults import (
    BackendError,
    RejectedError,
    TimedOutError,
    UnavailableError,
)
from harness.deployments.sglang.wire.call import Lost, Reply
from harness.deployments.sglang.wire.retry import retry_after_s, worth_retrying

_LONGEST = 2000


class Fault(msgspec.Struct, frozen=True):
    """Why an attempt failed. `status` is the HTTP status, or the one inside an answer that came with HTTP 200."""

    message: str
    status: int | None = None
    server_kind: str = ""
    asked_s: float | None = None
    timed_out: bool = False

    @property
    def transient(self) -> bool:
        """Whether sending the same again may succeed."""
        return worth_retrying(self.status)

    def raised(self, attempts: int) -> BackendError:
        """The exception for a request that ends here."""
        kind: type[BackendError]
        if self.timed_out:
            kind = TimedOutError
        elif self.transient:
            kind = UnavailableError
        else:
            kind = RejectedError
        return kind(self.message, attempts=attempts, status=self.status, server_kind=self.server_kind)


def read_lost(lost: Lost) -> Fault:
    """The fault of an attempt without a whole response."""
    return Fault(lost.message, timed_out=lost.kind == "timeout")


def read_refusal(reply: Reply) -> Fault | None:
    """The fault that a response other than 2xx tells of."""
    if 200 <= reply.status < 300:
        return None
    message, _, kind = _told(_json(reply.body))
    text = message or reply.body.decode("utf-8", errors="replace").strip() or "the server gave no reason"
    return Fault(text[:_LONGEST], reply.status, kind, retry_after_s(reply.headers))


def read_denial(answer: Mapping[str, Any]) -> Fault | None:
    """The fault inside an answer that came with HTTP 200: an error event, or an abort."""
    if answer.get("error") is not None:
        message, status, kind = _told(answer)
        return Fault(message[:_LONGEST], 400 if status is None else status, kind)
    meta = answer.get("meta_info")
    reason = meta.get("finish_reason") if isinstance(meta, Mapping) else None
    if not isinstance(reason, Mapping) or reason.get("type") != "abort":
        return None
    message = str(reason.get("message") or "aborted without a reason")
    return Fault(message[:_LONGEST], _status(reason.get("status_code")), str(reason.get("err_type") or ""))


def _told(answer: Any) -> tuple[str, int | None, str]:
    """Message, status and kind in any of the shapes; an empty message where there is none."""
    if not isinstance(answer, Mapping):
        return "", None, ""
    inner = answer.get("error")
    if isinstance(inner, str):
        return inner, None, ""
    source = inner if isinstance(inner, Mapping) else answer
    message = source.get("message") or source.get("detail") or ""
    return str(message), _status(source.get("code")), str(source.get("type") or "")


def _status(value: Any) -> int | None:
    """Statuses come as numbers, as digits, or as null."""
    return int(value) if isinstance(value, int) or (isinstance(value, str) and value.isdigit()) else None


def _json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return None
