"""What can be set on an SGLang deployment: one that runs already, or one that is started for the run."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal

import msgspec

from harness.dataset import PROJECT
from harness.errors import ConfigError

if TYPE_CHECKING:
    from harness.deployments.sglang.deployment import SGLangDeployment

Overlap = Literal["on", "delayed", "off"]
"""How the server's scheduler and its forward passes overlap. `on` is SGLang's default, under which a processor sees a
history that lacks the last token; `delayed` samples a step once the one before is known, as grammars make the server do
anyway; `off` does one after the other."""

Grammar = Literal["llguidance", "xgrammar", "outlines", "none"]


class SGLang(msgspec.Struct, frozen=True, tag="sglang", tag_field="kind", forbid_unknown_fields=True):
    """A server that runs at `url`.

    `model`: what it must serve (its served name, its path, or the last part of that); empty takes whatever it serves.
    `tokenizer`: the folder or hub name of its tokenizer; empty takes the one that the server names. `api_key_variable`
    names the environment variable that holds the key, so that no config or manifest holds it. `timeout_s` bounds one
    request; `attempts` is how often one is sent at most.
    """

    url: str = "http://localhost:30000/v1"
    model: str = ""
    tokenizer: str = ""
    api_key_variable: str = "SGLANG_API_KEY"
    timeout_s: float = 120.0
    attempts: int = 3

    def __post_init__(self) -> None:
        _check_patience(self.timeout_s, self.attempts)
        if not self.url.startswith(("http://", "https://")):
            raise ConfigError(f"deployment.url: {self.url!r}", "http://host:port", "mend the URL")

    @asynccontextmanager
    async def start(self) -> AsyncIterator["SGLangDeployment"]:
        """Find the server. Raises `DeploymentError`."""
        from harness.deployments.sglang.starting import attached

        async with attached(self) as deployment:
            yield deployment


class SGLangLaunch(msgspec.Struct, frozen=True, tag="sglang_launch", tag_field="kind", forbid_unknown_fields=True):
    """A server that is started, and ended, by this process.

    `python`: the interpreter that has SGLang (relative to the project), since SGLang pins versions that the harness
    cannot share. `model`: the default weights, a folder, or a hub name. `device`: `cuda` or `cpu`. `dtype`: as SGLang
    names it. `tp`, `dp`: tensor and data parallelism. `mem_fraction`: the share of GPU memory for weights and cache; 0
    leaves it to SGLang. `custom_processors`: whether processors may run in it (whoever reaches its port can then run
    code in it; it listens on this machine only). `arguments` and `environment` go to the server as they are. `port` 0
    takes a free one. `restarts` is how often it is started again after it died in a run.
    """

    python: str = "python"
    model: str = "smollm2-135m-instruct"
    tokenizer: str = ""
    device: Literal["cuda", "cpu"] = "cuda"
    dtype: str = "auto"
    tp: int = 1
    dp: int = 1
    mem_fraction: float = 0.0
    grammar_backend: Grammar = "xgrammar"
    overlap: Overlap = "delayed"
    custom_processors: bool = True
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    port: int = 0
    ready_within_s: float = 600.0
    restarts: int = 2
    timeout_s: float = 120.0
    attempts: int = 3

    def __post_init__(self) -> None:
        _check_patience(self.timeout_s, self.attempts)
        for name, least in (("tp", 1), ("dp", 1), ("port", 0), ("restarts", 0)):
            if (value := getattr(self, name)) < least:
                raise ConfigError(f"deployment.{name}: {value}", f"at least {least}", "mend the value")
        if not 0.0 <= self.mem_fraction < 1.0:
            raise ConfigError(f"deployment.mem_fraction: {self.mem_fraction}", "0 (SGLang's choice) to 1", "mend it")

    @property
    def interpreter(self) -> str:
        """`python` as a path: a bare name is looked up by the system, anything else stands below the project."""
        return str(PROJECT / self.python) if "/" in self.python else self.python

    @asynccontextmanager
    async def start(self) -> AsyncIterator["SGLangDeployment"]:
        """Start the server; it ends with the block. Raises `DeploymentError`."""
        from harness.deployments.sglang.starting import started

        async with started(self) as deployment:
            yield deployment


def _check_patience(timeout_s: float, attempts: int) -> None:
    if timeout_s <= 0:
        raise ConfigError(f"deployment.timeout_s: {timeout_s:g}", "more than 0 s", "mend the value")
    if attempts < 1:
        raise ConfigError(f"deployment.attempts: {attempts}", "at least 1", "mend the value")
