"""How much the automata of one vocabulary may hold together; past it, those that were used longest ago start anew."""

import weakref
from collections import OrderedDict
from typing import Protocol

LIMIT_BYTES = 256 * 2**20


class Holder(Protocol):
    """Something that holds what it can make again."""

    def forget(self) -> None:
        """Drop all of it."""


class Memory:
    """Counts what each holder holds, for as long as it lives."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._held: OrderedDict[int, tuple[weakref.ref[Holder], int]] = OrderedDict()
        self.total_bytes = 0

    def enter(self, holder: Holder) -> None:
        """Count `holder` from now on."""
        self._held[id(holder)] = (weakref.ref(holder), 0)
        weakref.finalize(holder, self._leave, id(holder)).atexit = False

    def used(self, holder: Holder) -> None:
        """Note that `holder` is at work."""
        self._held.move_to_end(id(holder))

    def add(self, holder: Holder, size_bytes: int) -> None:
        """Note that `holder` holds so much more; past the limit the oldest forget, in the end `holder` itself."""
        reference, held = self._held[id(holder)]
        self._held[id(holder)] = (reference, held + size_bytes)
        self.total_bytes += size_bytes
        for key in list(self._held) if self.total_bytes > self._limit else ():
            self._empty(key)
            if self.total_bytes <= self._limit // 2:
                break

    def _empty(self, key: int) -> None:
        reference, held = self._held[key]
        self._held[key] = (reference, 0)
        self.total_bytes -= held
        if (holder := reference()) is not None:
            holder.forget()

    def _leave(self, key: int) -> None:
        self.total_bytes -= self._held.pop(key)[1]
