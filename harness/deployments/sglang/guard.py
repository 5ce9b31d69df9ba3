"""Runs a server for a harness, and ends with it: `python guard.py GRACE_S COMMAND ...`.

The guard starts the command in a process group of its own and waits until its standard input closes (the harness let
go of it, or died, however it died) or the command ends. Then it asks the group to end, and after `GRACE_S` seconds
makes it, and whatever left the group, and waits until nothing is left. It uses the standard library alone.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time

_BECOME_REAPER = 36  # PR_SET_CHILD_SUBREAPER: orphans of the command become children of this process


def main(grace_s: float, command: list[str]) -> int:
    for how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(how, _go_on)
    ctypes.CDLL(None).prctl(_BECOME_REAPER, 1, 0, 0, 0)
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    select.select([sys.stdin.fileno(), os.pidfd_open(server.pid)], [], [])
    code = server.poll()
    end(server.pid, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    while children_left() and time.monotonic() < deadline:
        time.sleep(0.05)
    while children_left():
        end(server.pid, signal.SIGKILL)
        time.sleep(0.05)
    return _shell_code(code or 0)


def _go_on(*_: object) -> None:
    """Take a signal and go on. Ignoring it instead would be handed down to the command."""


def _shell_code(code: int) -> int:
    """An exit code as shells tell it: 128 and the signal's number for a command that a signal ended."""
    return 128 - code if code < 0 else code


def end(group: int, how: signal.Signals) -> None:
    """Signal the group, and with SIGKILL also every child that left it."""
    targets = [-group, *(children() if how is signal.SIGKILL else [])]
    for target in targets:
        try:
            os.kill(target, how)
        except ProcessLookupError:
            continue


def children_left() -> bool:
    """Whether there are children; those that ended are reaped."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True


def children() -> list[int]:
    """The children of this process."""
    with open(f"/proc/{os.getpid()}/task/{os.getpid()}/children") as file:
        return [int(pid) for pid in file.read().split()]


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
