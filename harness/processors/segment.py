"""Shared memory between the decoding loop and one worker: a note of what the worker is at, and rows.

The memory is a file without a name, so nothing is left behind, however either side ends. It grows as rows are asked
for. A row holds a mask or a row of logits; who may write to it follows from the messages.
"""

import contextlib
import mmap
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from harness.mask import words
from harness.processors.messages import EngineWork, Work

HEADER = 64
FIRST_ROWS = 8
IDLE = 0
"""The key of no sequence."""

Item = TypeVar("Item", np.int32, np.float32)


class Segment:
    """Rows of `row_bytes` each in the file `fd`, which it owns."""

    def __init__(self, fd: int, row_bytes: int) -> None:
        self._fd = fd
        self._row_bytes = row_bytes
        self._look()

    def fileno(self) -> int:
        return self._fd

    def row(self, index: int, kind: type[Item], count: int) -> NDArray[Item]:
        """The first `count` items of a row, as a view; the other side sees what is written there."""
        offset = HEADER + index * self._row_bytes
        if offset + self._row_bytes > len(self._map):
            self._grow(offset + self._row_bytes)
        return np.frombuffer(self._map, dtype=kind, count=count, offset=offset)

    @contextmanager
    def at(self, key: int) -> Iterator[None]:
        """The worker is busy with the sequence `key`: the other side sees it, even when this process dies of it."""
        self._since[0] = time.monotonic()
        self._key[0] = key
        try:
            yield
        finally:
            self._key[0] = IDLE

    def busy_with(self) -> tuple[int, float]:
        """The key of the sequence that the worker is busy with, or IDLE, and since when (`time.monotonic()`)."""
        return self._key[0], self._since[0]

    def close(self) -> None:
        """Close the file; the memory goes with the last view of it."""
        self._look_away()
        os.close(self._fd)

    def _grow(self, size: int) -> None:
        if os.fstat(self._fd).st_size < size:
            os.ftruncate(self._fd, HEADER + 2 * (size - HEADER))
        self._look_away()
        self._look()

    def _look(self) -> None:
        self._map = mmap.mmap(self._fd, os.fstat(self._fd).st_size)
        self._key = memoryview(self._map)[0:8].cast("q")
        self._since = memoryview(self._map)[8:16].cast("d")

    def _look_away(self) -> None:
        self._key.release()
        self._since.release()
        with contextlib.suppress(BufferError):  # a view is still in use, and keeps the memory until it goes
            self._map.close()


def create(row_bytes: int) -> Segment:
    """A new segment with its own file."""
    fd = nameless_file()
    os.ftruncate(fd, HEADER + FIRST_ROWS * row_bytes)
    return Segment(fd, row_bytes)


def nameless_file() -> int:
    """A file in memory without a name; on systems that have none, an unlinked temporary file."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("harness-rows")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def row_bytes(work: Work, width: int) -> int:
    """The bytes of one row: a mask for engines, float32 logits for the user's processors; whole cache lines."""
    size = 4 * (words(width) if isinstance(work, EngineWork) else width)
    return -(-size // 64) * 64
