"""What is worth sending again, and when."""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import msgspec

_WORTH_IT = frozenset({408, 409, 425, 429})


class Retries(msgspec.Struct, frozen=True):
    """How often a request is sent at most, and how long to wait in between: `first_wait_s`, then three times as long
    each time, at least what the server's Retry-After asks, at most `longest_wait_s`."""

    attempts: int = 5
    first_wait_s: float = 0.5
    longest_wait_s: float = 30.0

    def wait_s(self, failed: int, asked_s: float | None) -> float | None:
        """How long to wait after `failed` failed attempts; None means to give up, because it was the last one or the
        server asks for more time than there is."""
        if failed >= self.attempts or (asked_s or 0.0) > self.longest_wait_s:
            return None
        grown = min(self.first_wait_s * 3.0 ** (failed - 1), self.longest_wait_s)
        return max(grown, asked_s or 0.0)


def worth_retrying(status: int | None) -> bool:
    """Whether the same request may succeed later. An abort without a status was somebody's, not the request's fault."""
    return status is None or status >= 500 or status in _WORTH_IT


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """What `Retry-After` asks for, in seconds; a date counts from the response's own `Date`, so that clocks need not
    agree. None where there is none, or it cannot be read."""
    asked = headers.get("retry-after", "")
    if asked.isascii() and asked.isdigit():
        return float(asked)
    try:
        gap = parsedate_to_datetime(asked) - parsedate_to_datetime(headers.get("date", ""))
    except (TypeError, ValueError):
        return None
    return max(0.0, gap.total_seconds())
