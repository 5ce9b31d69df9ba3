"""Runs a server for a harness, and ends with it: `python guard.py COMMAND ...`.

The guard starts the command in a process group of its own and waits until its standard input closes (the harness let
go of it, or died, however it died) or the command ends. Then it ends the group, and whatever the command started that
left the group, and waits until nothing is left. It uses the standard library alone, so that any Python can run it.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time

GRACE_S = 10.0
_BECOME_REAPER = 36  # PR_SET_CHILD_SUBREAPER: orphans of the command become children of this process


def main(command: list[str]) -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_BECOME_REAPER, 1, 0, 0, 0)
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    select.select([sys.stdin.fileno(), os.pidfd_open(server.pid)], [], [])
    code = server.poll()
    end(server.pid, signal.SIGTERM)
    deadline = time.monotonic() + (GRACE_S if code is None else 1.0)
    while children_left() and time.monotonic() < deadline:
        time.sleep(0.05)
    while children_left():
        end(server.pid, signal.SIGKILL)
        time.sleep(0.05)
    return 0 if code is None else code


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
    sys.exit(main(sys.argv[1:]))
