"""Whose code an event loop is running, and for how long, when many sequences take turns on it."""

import asyncio
import time
from collections.abc import Awaitable, Coroutine, Generator
from typing import Any, TypeVar

from harness.processors.containment import TooSlow, failed
from harness.processors.messages import Failed
from harness.processors.segment import Segment

T = TypeVar("T")


class Watch:
    """Notes in shared memory which sequence's code runs, each time the event loop resumes it."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self.busy_s = 0.0
        """Seconds that code of all sequences has run."""

    def clock(self, key: int) -> "Clock":
        """A clock for one piece of work of the sequence `key`, started now."""
        return Clock(self, self._segment, key)


class Clock:
    """How long one sequence's work takes: all time since the start, less the time that others' code ran."""

    def __init__(self, watch: Watch, segment: Segment, key: int) -> None:
        self._watch = watch
        self._segment = segment
        self._key = key
        self._started = time.perf_counter()
        self._others_s = watch.busy_s

    def spent_s(self) -> float:
        """Seconds spent on this work until now."""
        return time.perf_counter() - self._started - (self._watch.busy_s - self._others_s)

    async def within(self, limit_s: float, work: Coroutine[Any, Any, T]) -> T | Failed:
        """What `work` gives, or how it failed; it fails when it takes more than `limit_s` seconds."""
        task = asyncio.create_task(self._contained(work))
        try:
            while not task.done():
                left_s = limit_s - self.spent_s()
                if left_s <= 0:
                    return failed(self._key, TooSlow(f"the processor took longer than {limit_s:g} s"))
                await asyncio.wait({task}, timeout=left_s)
            if task.cancelled():
                return Failed(self._key, "processor", "the processor cancelled its own task")
            return task.result()
        finally:
            task.cancel()

    async def _contained(self, work: Coroutine[Any, Any, T]) -> T | Failed:
        """Whatever the user's code raises is a value, exits too, which the event loop would not survive."""
        try:
            return await _Resumed(self, work)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            return failed(self._key, error)

    def resume(self, generator: Generator[Any, Any, T], value: Any, error: BaseException | None) -> Any:
        """Run the user's code until it next waits."""
        started = time.perf_counter()
        try:
            with self._segment.at(self._key):
                return generator.throw(error) if error else generator.send(value)
        finally:
            took_s = time.perf_counter() - started
            self._watch.busy_s += took_s
            self._others_s += took_s


class _Resumed(Awaitable[T]):
    """Awaits `work` and has the clock run each of its steps."""

    def __init__(self, clock: Clock, work: Coroutine[Any, Any, T]) -> None:
        self._clock = clock
        self._work = work

    def __await__(self) -> Generator[Any, Any, T]:
        steps = self._work.__await__()
        value, error = None, None
        while True:
            try:
                waits_for = self._clock.resume(steps, value, error)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
            value, error = None, None
            try:
                value = yield waits_for
            except BaseException as thrown:  # the event loop cancels: let the user's code know
                error = thrown
