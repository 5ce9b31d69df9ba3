"""An engine in a process of its own, watched: what takes too long or too much memory is ended and says which."""

import contextlib
import multiprocessing
import signal
import time
from collections.abc import Iterator
from typing import Literal

import msgspec
import psutil

from harness.errors import HarnessError
from harness.mask_bench.config import Limits
from harness.mask_bench.messages import Answer, Done, Ended, Job, Ready, Refused, Said, Verdicts
from harness.mask_bench.worker import main
from harness.vocabulary import Vocabulary

Death = Literal["timeout", "memory", "crash"]
LOOK_S = 0.05
START_S = 300.0
FINAL = (Done, Refused, Ended, Answer, Verdicts)


class Broken(Exception):  # noqa: N818 - what became of a job, not a fault of the harness
    """The worker was ended, or ended by itself, during a job."""

    def __init__(self, death: Death, reason: str) -> None:
        self.death: Death = death
        self.reason = reason
        super().__init__(death, reason)


class Guarded:
    """One engine. Its process starts at the first job, and anew after it broke or once it holds half the memory it
    may, so that no schema pays for those before it."""

    def __init__(self, name: str, known: Vocabulary, limits: Limits) -> None:
        self.name = name
        self.ready: Ready | None = None
        self.starts = 0
        self.known, self._limits = known, limits
        self._process: multiprocessing.process.BaseProcess | None = None

    def ask(self, job: Job) -> Iterator[Said]:
        """All that is said to a job. Raises `Broken`."""
        self.start()
        self._pipe.send_bytes(msgspec.msgpack.encode(job))
        seen = psutil.Process(self._pid)
        until_s, until_cpu_s = time.monotonic() + self._limits.wall_s, _cpu_s(seen) + self._limits.cpu_s
        while True:
            said = self._hear(seen, until_s, until_cpu_s)
            if said is None:
                continue
            if isinstance(said, FINAL):
                self._refresh(seen)
                yield said
                return
            yield said

    def start(self) -> Ready:
        """Start the process if there is none. Raises `HarnessError` where the engine cannot start at all."""
        if self._process is None or self.ready is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            arguments = (theirs, self.name, self.known, self._limits.wall_s)
            self._process = context.Process(target=main, args=arguments, daemon=True)
            self._process.start()
            theirs.close()
            self._pid = self._process.pid or 0
            self.ready = self._first()
            self.starts += 1
        return self.ready

    def stop(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None
            self._pipe.close()

    def _first(self) -> Ready:
        with contextlib.suppress(EOFError):
            if self._pipe.poll(START_S):
                return msgspec.msgpack.decode(self._pipe.recv_bytes(), type=Ready)
        self.stop()
        raise HarnessError(
            f"engine {self.name}: its process did not start", "an engine that can be imported", "see above"
        )

    def _hear(self, seen: psutil.Process, until_s: float, until_cpu_s: float) -> Said | None:
        try:
            if self._pipe.poll(LOOK_S):
                return msgspec.msgpack.decode(self._pipe.recv_bytes(), type=Said)
            used_mib, used_cpu_s = seen.memory_info().rss / 2**20, _cpu_s(seen)
        except (EOFError, OSError, psutil.NoSuchProcess, psutil.ZombieProcess):
            raise self._broken("crash", self._death()) from None
        if used_mib > self._limits.memory_mib:
            raise self._broken("memory", f"over {self._limits.memory_mib:,.0f} MiB")
        if used_cpu_s > until_cpu_s:
            raise self._broken("timeout", f"over {self._limits.cpu_s:g} processor seconds")
        if time.monotonic() > until_s:
            raise self._broken("timeout", f"over {self._limits.wall_s:g} s on the clock")
        return None

    def _broken(self, death: Death, reason: str) -> Broken:
        self.stop()
        return Broken(death, reason)

    def _death(self) -> str:
        process = self._process
        assert process is not None
        process.join(5.0)
        code = process.exitcode
        if code is None:
            return "closed its pipe"
        return f"exited with code {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"

    def _refresh(self, seen: psutil.Process) -> None:
        if seen.memory_info().rss / 2**20 > self._limits.memory_mib / 2:
            self.stop()


def _cpu_s(seen: psutil.Process) -> float:
    times = seen.cpu_times()
    return times.user + times.system
