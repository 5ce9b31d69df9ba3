"""Who waits: the synchronous and the asynchronous way of carrying a flow's calls over HTTP, one pool of connections
each.

A call ends when the whole response is there or `timeout` seconds have passed since it was sent. Leaving early, for
whatever reason, closes the connection, at which SGLang stops working on the request.
"""

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Timer
from typing import TypeVar, cast

import httpx

from harness.deployments.sglang.deliver import Flow
from harness.deployments.sglang.wire.call import Call, Lost, Outcome, Reply
from harness.deployments.sglang.wire.stream import AnswerStream

T = TypeVar("T")

_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=3.0)
"""Servers close idle connections after 5 s; using one at that very moment would fail, so this side closes first."""


class SyncFace:
    """Carries flows out on the calling thread. Many threads may use it at once."""

    def __init__(self, url: str, headers: dict[str, str], timeout: float) -> None:
        self._url, self._headers, self._timeout = url, headers, timeout
        self._pool: httpx.Client | None = None
        self._opening = Lock()

    def run(self, flow: Flow[T]) -> T:
        """Carry `flow` out and give its result."""
        try:
            call = next(flow)
            while True:
                time.sleep(call.wait_s)
                call = flow.send(self._send(call))
        except StopIteration as done:
            return cast(T, done.value)
        finally:
            flow.close()

    def close(self) -> None:
        """Close the connections; another call opens new ones."""
        with self._opening:
            if self._pool is not None:
                self._pool.close()
            self._pool = None

    def _client(self) -> httpx.Client:
        with self._opening:
            if self._pool is None:
                self._pool = httpx.Client(
                    base_url=self._url, headers=self._headers, timeout=self._timeout, limits=_LIMITS
                )
            return self._pool

    def _send(self, call: Call) -> Outcome:
        received = _Received(call)
        expired = Event()
        try:
            with self._client().stream(call.method, call.path, content=call.body) as response:
                with _closed_after(response, self._timeout - received.elapsed_s(), expired):
                    received.start(response)
                    for piece in response.iter_bytes():
                        received.take(piece)
                return received.reply(response)
        except httpx.TransportError as error:
            return _lost(error, self._timeout, timed_out=expired.is_set())


class AsyncFace:
    """Carries flows out in the running event loop. A pool of connections belongs to one loop; in another one, a new
    pool is made."""

    def __init__(self, url: str, headers: dict[str, str], timeout: float) -> None:
        self._url, self._headers, self._timeout = url, headers, timeout
        self._pool: tuple[asyncio.AbstractEventLoop, httpx.AsyncClient] | None = None

    async def run(self, flow: Flow[T]) -> T:
        """Carry `flow` out and give its result. Cancelling it closes the connection."""
        try:
            call = next(flow)
            while True:
                if call.wait_s > 0.0:
                    await asyncio.sleep(call.wait_s)
                call = flow.send(await self._send(call))
        except StopIteration as done:
            return cast(T, done.value)
        finally:
            flow.close()

    async def close(self) -> None:
        """Close the connections; another call opens new ones."""
        if self._pool is not None and self._pool[0] is asyncio.get_running_loop():
            await self._pool[1].aclose()
        self._pool = None

    def _client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if self._pool is None or self._pool[0] is not loop:
            client = httpx.AsyncClient(base_url=self._url, headers=self._headers, timeout=None, limits=_LIMITS)
            self._pool = (loop, client)
        return self._pool[1]

    async def _send(self, call: Call) -> Outcome:
        received = _Received(call)
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._client().stream(call.method, call.path, content=call.body) as response,
            ):
                received.start(response)
                async for piece in response.aiter_bytes():
                    received.take(piece)
                return received.reply(response)
        except (httpx.TransportError, TimeoutError) as error:
            return _lost(error, self._timeout, timed_out=isinstance(error, TimeoutError))


class _Received:
    """What has arrived of one response."""

    def __init__(self, call: Call) -> None:
        self._streamed = call.streamed
        self._stream: AnswerStream | None = None
        self._pieces: list[bytes] = []
        self._sent_s = time.time()
        self._began = time.perf_counter()

    def elapsed_s(self) -> float:
        return time.perf_counter() - self._began

    def start(self, response: httpx.Response) -> None:
        self._stream = AnswerStream() if self._streamed and response.status_code == 200 else None

    def take(self, piece: bytes) -> None:
        if self._stream is None:
            self._pieces.append(piece)
        else:
            self._stream.feed(piece, self.elapsed_s())

    def reply(self, response: httpx.Response) -> Reply:
        headers = {name.lower(): value for name, value in response.headers.items()}
        body = b"".join(self._pieces)
        return Reply(response.status_code, headers, body, self._stream, self._sent_s, self.elapsed_s())


@contextmanager
def _closed_after(response: httpx.Response, seconds: float, expired: Event) -> Iterator[None]:
    """Cut the connection after `seconds`, from another thread: a read may wait for less than the time limit again and
    again. Sets `expired` when it does."""
    wire = response.extensions["network_stream"].get_extra_info("socket")

    def cut() -> None:
        expired.set()
        with suppress(OSError):
            wire.shutdown(socket.SHUT_RDWR)

    timer = Timer(max(0.0, seconds), cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _lost(error: Exception, timeout: float, *, timed_out: bool) -> Lost:
    if timed_out or isinstance(error, httpx.TimeoutException):
        return Lost("timeout", f"no complete answer within {timeout:g} s")
    return Lost("connection", f"{type(error).__name__}: {error}")
