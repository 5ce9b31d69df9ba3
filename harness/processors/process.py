"""A worker process, as the decoding loop's side starts, watches and ends it."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys

from harness.processors.channel import LoopEnd
from harness.processors.segment import create

BOOTSTRAP = """\
import json, sys
sys.path[:], fds = json.loads(sys.argv[1])
from harness.processors.worker import main
main(*fds)
"""
EXIT_S = 0.5
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1")


class Process:
    """A worker process. It gets this process's import path, no signals from the terminal, and the ends of three files:
    the channel, the rows, and a pipe that closes when this process is gone."""

    def __init__(self, row_bytes: int) -> None:
        ours, theirs = socket.socketpair()
        life, self._life = os.pipe()
        self.end = LoopEnd(ours)
        self.segment = create(row_bytes)
        with theirs:
            self._process = _start(theirs.fileno(), self.segment.fileno(), life)
        self._dropped = False
        os.close(life)

    @property
    def pid(self) -> int:
        return self._process.pid

    def death(self) -> str | None:
        """How the worker ended; None while it runs."""
        if self.end.closed:  # its exit code follows at once, if it has ended
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(EXIT_S)
        code = self._process.poll()
        if code is None:
            return "closed its channel" if self.end.closed else None
        return f"exited with code {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"

    def drop(self, grace_s: float) -> None:
        """End the worker, by force after `grace_s` seconds, and free what it shared. Dropping twice is allowed."""
        if self._dropped:
            return
        self._dropped = True
        self.end.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_s)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._life)
        self.segment.close()


def _start(channel: int, segment: int, life: int) -> "subprocess.Popen[bytes]":
    fds = (channel, segment, life)
    path = [entry or os.getcwd() for entry in sys.path]
    return subprocess.Popen(
        [sys.executable, "-P", "-u", "-c", BOOTSTRAP, json.dumps([path, fds])],
        stdin=subprocess.DEVNULL,
        pass_fds=fds,
        process_group=0,
        env=os.environ | ONE_THREAD,
    )
