"""A streamed answer as it builds up.

SGLang's events are cumulative: each holds everything from the start, and events in between may be left out. So the last
event is the answer, and arrival times come from the growth of the server's own token count, never from counting events
or from text (a token can be half a character).
"""

import msgspec

from harness.deployments.sglang.faults import UnsoundAnswerError
from harness.deployments.sglang.wire.sse import EventDecoder

_END = b"[DONE]"


class _Count(msgspec.Struct):
    completion_tokens: int = 0


class _Progress(msgspec.Struct):
    meta_info: _Count | None = None


class AnswerStream:
    """`last` is the newest event's JSON, `token_s` the arrival of each token so far, `whole` whether the end came."""

    def __init__(self) -> None:
        self.last = b""
        self.token_s: list[float] = []
        self.whole = False
        self._events = EventDecoder()
        self._progress = msgspec.json.Decoder(_Progress)

    def feed(self, piece: bytes, at_s: float) -> None:
        """Take bytes that arrived `at_s` seconds after sending. Raises `UnsoundAnswerError` for an event that is not
        JSON."""
        for data in self._events.feed(piece):
            if data == _END:
                self.whole = True
            elif not self.whole:
                self._take(data, at_s)

    def _take(self, data: bytes, at_s: float) -> None:
        self.last = data
        try:
            meta = self._progress.decode(data).meta_info
        except msgspec.DecodeError as error:
            start = data[:200].decode("utf-8", errors="replace")
            raise UnsoundAnswerError(f"an event of the stream cannot be read ({error}): {start!r}") from None
        count = 0 if meta is None else meta.completion_tokens
        self.token_s += [at_s] * (count - len(self.token_s))
