"""Whether a server still lives, after a request to it was lost, and how it comes back."""

import asyncio
import time
from pathlib import Path
from typing import Literal, Protocol

import httpx

from harness.deployments.sglang.launch import Server, ServerCommand
from harness.errors import DeploymentError

Found = Literal["alive", "restarted"]

PATIENCE_S = 15.0
"""How long a server that does not answer may take to answer again, or to end."""


class Life(Protocol):
    """What stands behind a URL."""

    restarts: int
    """How often it has come back after it was gone."""

    @property
    def log(self) -> Path | None:
        """The server's log, where this process has it."""

    async def after_loss(self, sent: float) -> Found:
        """A request sent at `sent` (`time.monotonic()`) was lost: was it the server? `alive`: it answers, and did all
        the while; `restarted`: it was started again since. Raises `DeploymentError` where it is gone for good."""


class Attached:
    """A server that somebody else started."""

    log = None

    def __init__(self, root_url: str) -> None:
        self._root_url = root_url
        self.restarts = 0
        self._gone = False

    async def after_loss(self, sent: float) -> Found:
        deadline = time.monotonic() + PATIENCE_S
        while not await answers(self._root_url):
            self._gone = True
            if time.monotonic() > deadline:
                raise DeploymentError(
                    f"the server at {self._root_url} is gone: nothing answers /ready",
                    "a server that answers",
                    "start it again and repeat the command with folder= set to this run's folder: it goes on where it "
                    "stopped",
                )
            await asyncio.sleep(0.5)
        self.restarts += self._gone
        self._gone = False
        return "alive"


class Launched:
    """A server of this process. It is started again on the same port, at most `restarts` times."""

    def __init__(self, command: ServerCommand, log: Path, ready_within_s: float, restarts: int) -> None:
        self._command, self._ready_within_s, self._left = command, ready_within_s, restarts
        self.log: Path | None = log
        self._log = log
        self._server: Server | None = None
        self._since = 0.0
        self._starting = asyncio.Lock()
        self.restarts = 0

    async def start(self) -> None:
        """Start it and wait until it answers. Raises `DeploymentError`."""
        self._server = server = Server(self._command, self._log)
        try:
            await asyncio.to_thread(server.wait_until_ready, self._ready_within_s)
        except BaseException:
            server.stop()
            raise
        self._since = time.monotonic()

    async def after_loss(self, sent: float) -> Found:
        async with self._starting:
            if self._since > sent:
                return "restarted"
            if await self._recovers():
                return "alive"
            await self._again()
            return "restarted"

    def stop(self) -> None:
        """End it and all its processes."""
        if self._server is not None:
            self._server.stop()

    async def _recovers(self) -> bool:
        assert self._server is not None
        deadline = time.monotonic() + PATIENCE_S
        while self._server.ended() is None and time.monotonic() < deadline:
            if await answers(self._server.root_url):
                return True
            await asyncio.sleep(0.1)
        return False

    async def _again(self) -> None:
        assert self._server is not None
        await asyncio.to_thread(self._server.stop)
        if self._left == 0:
            raise self._server.failure(f"the server died, {self.restarts + 1} times in this run")
        self._left -= 1
        self.restarts += 1
        await self.start()


async def answers(root_url: str) -> bool:
    """Whether a server answers `/ready` there now."""
    try:
        async with httpx.AsyncClient(timeout=5.0) as client:
            return (await client.get(f"{root_url}/ready")).status_code == 200
    except httpx.TransportError:
        return False
