"""Starting an SGLang server of one's own, and ending it.

The server runs in its own Python environment, in a process group of its own, under a guard that ends all of it when
this process lets go or dies. Its output goes to a log file, whose last lines stand in every error.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import msgspec

from harness.deployments.sglang import guard
from harness.errors import DeploymentError

CPU_ARGUMENTS = (
    *("--device", "cpu", "--attention-backend", "torch_native", "--sampling-backend", "pytorch"),
    *("--disable-cuda-graph", "--max-total-tokens", "16384", "--sleep-on-idle"),
)
"""What a server on the CPU needs; it makes room for 16,384 tokens, the prompts and answers that run at once. Its
scheduler would otherwise keep a core busy while there is nothing to do."""

CPU_ENVIRONMENT = {"SGLANG_USE_CPU_ENGINE": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
"""One thread: several of them wait for each other at every layer, which on cores that are also used by the harness
turns a token of 30 ms into one of 200 to 600 ms."""

_TAIL_LINES = 20
_GRACE_S = 10.0


class ServerCommand(msgspec.Struct, frozen=True):
    """How to start a server: the Python that has SGLang, the model (a folder or a hub name), arguments and environment
    on top of this process's."""

    python: Path
    model: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    port: int = 0
    """0 takes a free one."""


class Server:
    """A server that was started: `base_url` is what `SGLangBackend` takes."""

    def __init__(self, command: ServerCommand, log: Path) -> None:
        self.port = command.port or free_port()
        self.log = log
        with log.open("ab") as output:
            self._guard = subprocess.Popen(
                [sys.executable, guard.__file__, str(_GRACE_S), *_words(command, self.port)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=os.environ | command.environment,
                start_new_session=True,
            )

    @property
    def root_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return f"{self.root_url}/v1"

    @property
    def guard_pid(self) -> int:
        """The guard's process id: the server's processes are its descendants."""
        return self._guard.pid

    def ended(self) -> int | None:
        """The exit code of a server that ended by itself; None while it runs."""
        return self._guard.poll()

    def wait_until_ready(self, seconds: float) -> None:
        """Return once it answers. Raises `DeploymentError` if it ends before, or takes longer than `seconds`."""
        deadline = time.monotonic() + seconds
        while not self._ready():
            if (code := self.ended()) is not None:
                raise self.failure(f"the server ended with code {code} before it was ready")
            if time.monotonic() > deadline:
                raise self.failure(f"the server was not ready after {seconds:g} s")
            time.sleep(0.2)

    def failure(self, found: str) -> DeploymentError:
        """An error about this server, with the end of its log."""
        return DeploymentError(f"{found}; the end of {self.log}:\n{tail(self.log)}", "a server that answers /ready")

    def stop(self) -> None:
        """End the server and all its processes; returns when none is left. Stopping twice is allowed."""
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        self._guard.wait()

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.root_url}/ready", timeout=5.0).status_code == 200
        except httpx.TransportError:
            return False


@contextmanager
def launched(command: ServerCommand, log: Path, ready_within_s: float = 300.0) -> Iterator[Server]:
    """A server that answers, until the block ends. Raises `DeploymentError` where it cannot be started."""
    if not command.python.exists():
        raise DeploymentError(
            f"there is no Python at {command.python}",
            "the environment that has SGLang",
            "make sglang-cpu builds one for the CPU; for a GPU, name yours in deployment.python",
        )
    server = Server(command, log)
    try:
        server.wait_until_ready(ready_within_s)
        yield server
    finally:
        server.stop()


def free_port() -> int:
    """A port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def tail(log: Path) -> str:
    """The last lines of a log."""
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL_LINES:])


def _words(command: ServerCommand, port: int) -> list[str]:
    start = [str(command.python), "-m", "sglang.launch_server", "--model-path", command.model]
    return [*start, "--host", "127.0.0.1", "--port", str(port), *command.arguments]
