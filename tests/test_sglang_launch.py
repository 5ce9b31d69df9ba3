"""Starting a server, and leaving nothing behind: with real processes, and small programs in the server's place."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.deployments.sglang import guard
from harness.deployments.sglang.launch import Server, ServerCommand, launched
from harness.errors import DeploymentError

FAMILY = """
sleep 600 & echo $! >> {pids}
setsid sleep 600 & echo $! >> {pids}
(sh -c 'trap "" TERM; echo $$ >> {pids}; sleep 600; sleep 600') &
echo $$ >> {pids}
"""
"""A child in the group, one that left it, one that ignores the polite signal, and the program itself."""

SERVER = """#!{python}
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Ready(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

print("arguments:", *sys.argv[1:], flush=True)
HTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Ready).serve_forever()
"""


def family(folder: Path, last: str = "wait") -> tuple[Path, list[str]]:
    pids = folder / "pids"
    return pids, ["sh", "-c", (FAMILY + last).format(pids=pids)]


def guarded(command: list[str]) -> list[str]:
    return [sys.executable, guard.__file__, "1", *command]


def started(pids: Path) -> list[int]:
    """The four process ids, once all are there."""
    deadline = time.monotonic() + 30.0
    while time.monotonic() < deadline:
        found = pids.read_text().split() if pids.exists() else []
        if len(found) == 4:
            return [int(pid) for pid in found]
        time.sleep(0.02)
    raise AssertionError("the family did not start")


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and waits to be reaped does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def none_left(pids: list[int]) -> bool:
    deadline = time.monotonic() + 30.0
    while any(alive(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_letting_go_of_a_guard_ends_every_process_of_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids, command = family(tmp_path)
    watch = subprocess.Popen(guarded(command), stdin=subprocess.PIPE, start_new_session=True)
    family_pids = started(pids)
    assert watch.stdin is not None
    watch.stdin.close()
    assert watch.wait(30.0) == 0
    assert not any(alive(pid) for pid in family_pids)


def test_a_command_is_asked_to_end_before_it_is_made_to(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    polite = f"trap 'touch {asked}; exit 0' TERM; echo ready; while true; do sleep 0.05; done"
    watch = subprocess.Popen(guarded(["sh", "-c", polite]), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert watch.stdin is not None
    assert watch.stdout is not None
    assert watch.stdout.readline() == b"ready\n"
    watch.stdin.close()
    watch.wait(30.0)
    watch.stdout.close()
    assert asked.exists()


def test_a_killed_harness_takes_its_server_with_it(tmp_path: Path) -> None:
    pids, command = family(tmp_path)
    start = f"import subprocess, sys, time; subprocess.Popen({[sys.executable, guard.__file__, '1', *command]!r}, "
    start += "stdin=subprocess.PIPE, start_new_session=True); time.sleep(600)"
    harness = subprocess.Popen([sys.executable, "-c", start])
    family_pids = started(pids)
    harness.send_signal(signal.SIGKILL)
    harness.wait()
    assert none_left(family_pids)


def test_a_command_that_ends_by_itself_leaves_nothing_and_its_code_is_told(tmp_path: Path) -> None:
    pids, command = family(tmp_path, last="until [ $(wc -l < {pids}) = 4 ]; do sleep 0.05; done; exit 7")
    watch = subprocess.Popen(guarded(command), stdin=subprocess.PIPE, start_new_session=True)
    assert watch.wait(30.0) == 7
    assert not any(alive(pid) for pid in started(pids))


def program(folder: Path, text: str) -> Path:
    path = folder / "python"
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_server_is_handed_over_once_it_answers_and_is_gone_after_the_block(tmp_path: Path) -> None:
    python = program(tmp_path, SERVER.format(python=sys.executable))
    command = ServerCommand(python, "the-model", ("--dtype", "float32"), {"WITH": "this"})
    with launched(command, tmp_path / "log", ready_within_s=30.0) as server:
        assert server.ended() is None
        address = server.root_url
    assert server.ended() is not None
    assert (
        f"--model-path the-model --host 127.0.0.1 --port {server.port} --dtype float32"
        in (tmp_path / "log").read_text()
    )
    assert address.endswith(str(server.port))


def test_a_server_that_fails_to_start_is_an_error_that_shows_the_end_of_its_log(tmp_path: Path) -> None:
    python = program(tmp_path, "#!/bin/sh\necho no such model >&2\nexit 3\n")
    with (
        pytest.raises(DeploymentError, match=r"ended with code 3 before it was ready(.|\n)*no such model"),
        launched(ServerCommand(python, "m"), tmp_path / "log", ready_within_s=30.0),
    ):
        pass


def test_a_server_that_is_not_ready_in_time_is_ended(tmp_path: Path) -> None:
    python = program(tmp_path, "#!/bin/sh\necho $$ > $0.pid\nexec sleep 600\n")
    with (
        pytest.raises(DeploymentError, match="not ready after 1 s"),
        launched(ServerCommand(python, "m"), tmp_path / "log", ready_within_s=1.0),
    ):
        pass
    assert not alive(int((tmp_path / "python.pid").read_text()))


def test_a_missing_environment_is_an_error_that_says_how_to_make_it(tmp_path: Path) -> None:
    with (
        pytest.raises(DeploymentError, match="make sglang-cpu"),
        launched(ServerCommand(tmp_path / "none", "m"), tmp_path / "log"),
    ):
        pass


def test_a_server_that_dies_is_noticed(tmp_path: Path) -> None:
    python = program(tmp_path, SERVER.format(python=sys.executable))
    server = Server(ServerCommand(python, "m"), tmp_path / "log")
    server.wait_until_ready(30.0)
    os.kill(_listening(server), signal.SIGKILL)
    deadline = time.monotonic() + 30.0
    while server.ended() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert server.ended() == 128 + signal.SIGKILL
    server.stop()


def _listening(server: Server) -> int:
    import psutil

    watch = psutil.Process(server.guard_pid)
    (child,) = watch.children()
    return child.pid
