"""Whose code an event loop is running, and for how long, when many sequences take turns on it."""

import asyncio
import time
from collections.abc import Awaitable, Coroutine, Generator
from typing import Any, TypeVar

from harness.processors.containment import failed
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
        """A clock for the sequence `key`; it starts when its code is first resumed."""
        return Clock(self, self._segment, key)


class Clock:
    """How long one sequence's code takes, what it awaits included, less the time that others' code ran meanwhile. The
    time is divided into halves by `pause`; the clock goes on when the code is resumed."""

    def __init__(self, watch: Watch, segment: Segment, key: int) -> None:
        self._watch = watch
        self._segment = segment
        self._key = key
        self._since: float | None = None
        self._others_s = 0.0
        self._before_s = 0.0

    def half_s(self) -> float:
        """Seconds of the half that is running; 0.0 while the clock is paused."""
        if self._since is None:
            return 0.0
        return time.perf_counter() - self._since - (self._watch.busy_s - self._others_s)

    def total_s(self) -> float:
        """Seconds until now."""
        return self._before_s + self.half_s()

    def pause(self) -> None:
        """Stop until the code is next resumed."""
        self._before_s = self.total_s()
        self._since = None

    async def run(self, work: Coroutine[Any, Any, T]) -> T | Failed:
        """What `work` gives, or how it failed. Whatever the user's code raises is a value, exits too, which the event
        loop would not survive."""
        try:
            return await _Resumed(self, work)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            return failed(self._key, error)
        finally:
            self.pause()

    def resume(self, steps: Generator[Any, Any, T], value: Any, error: BaseException | None) -> Any:
        """Run the user's code until it next waits."""
        started = time.perf_counter()
        if self._since is None:
            self._since, self._others_s = started, self._watch.busy_s
        try:
            with self._segment.at(self._key):
                return steps.throw(error) if error else steps.send(value)
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
