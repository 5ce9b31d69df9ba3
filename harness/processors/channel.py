"""The two ends of the socket between the decoding loop and one worker.

The loop's end never blocks: what the socket does not take is kept and sent later, so a worker that is busy or hangs
cannot stop the loop. The worker's end blocks, because a worker has nothing else to do.
"""

import contextlib
import select
import socket
from collections import deque

import msgspec

from harness.processors.messages import Frames, FromWorker, ToWorker, frame

CHUNK = 1 << 16


class LoopEnd:
    """The decoding loop's end. `closed` is true once the worker's end is gone."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._frames = Frames()
        self._decoder = msgspec.msgpack.Decoder(FromWorker)
        self._unsent = bytearray()
        self.closed = False

    def fileno(self) -> int:
        return self._socket.fileno()

    def events(self) -> int:
        """What to poll for: there is something to read, and, where bytes are kept back, room to write."""
        return select.POLLIN | (select.POLLOUT if self._unsent else 0)

    def send(self, message: ToWorker | bytes) -> None:
        """Send a message, or one that is framed already; never blocks."""
        self._unsent += message if isinstance(message, bytes) else frame(message)
        self.flush()

    def flush(self) -> None:
        """Send what was kept back, as far as the socket takes it."""
        while self._unsent and not self.closed:
            try:
                sent = self._socket.send(memoryview(self._unsent)[:CHUNK])
            except BlockingIOError:
                return
            except OSError:
                self.closed = True
                return
            del self._unsent[:sent]

    def receive(self) -> list[FromWorker]:
        """The messages that are there now; never blocks."""
        self.flush()
        messages: list[FromWorker] = []
        while not self.closed:
            try:
                data = self._socket.recv(CHUNK)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            self.closed = not data
            messages += [self._decoder.decode(payload) for payload in self._frames.feed(data)]
            if len(data) < CHUNK:
                break
        return messages

    def close(self) -> None:
        self.closed = True
        self._socket.close()


class WorkerEnd:
    """The worker's end."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(True)
        self._socket = sock
        self._frames = Frames()
        self._decoder = msgspec.msgpack.Decoder(ToWorker)
        self._read: deque[ToWorker] = deque()

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: FromWorker) -> None:
        """Send a message; nobody needs it where the loop's end is gone."""
        with contextlib.suppress(ConnectionError):
            self._socket.sendall(frame(message))

    def next(self) -> ToWorker | None:
        """The next message, waiting for it; None where the loop's end is gone."""
        while not self._read:
            if not self.read():
                return None
        return self._read.popleft()

    def read(self) -> bool:
        """Wait for bytes; False where the loop's end is gone."""
        try:
            data = self._socket.recv(CHUNK)
        except ConnectionError:
            return False
        self._read.extend(self._decoder.decode(payload) for payload in self._frames.feed(data))
        return bool(data)

    def taken(self) -> list[ToWorker]:
        """The messages that are read and not taken yet."""
        taken = list(self._read)
        self._read.clear()
        return taken

    def close(self) -> None:
        self._socket.close()
