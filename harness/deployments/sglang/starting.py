"""From a config to a running deployment: find or start the server, read what it is, check what can be seen at once."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from harness.deployments.embedded.weights import DEFAULT_MODEL, default_weights
from harness.deployments.sglang.backend import SGLangBackend
from harness.deployments.sglang.config import SGLang, SGLangLaunch
from harness.deployments.sglang.courier import Courier
from harness.deployments.sglang.deployment import Parts, SGLangDeployment
from harness.deployments.sglang.facts import facts, sources, weights_name
from harness.deployments.sglang.faults import BackendError
from harness.deployments.sglang.launch import CPU_ARGUMENTS, CPU_ENVIRONMENT, ServerCommand, free_port
from harness.deployments.sglang.life import Attached, Launched, Life
from harness.deployments.sglang.wire.retry import Retries
from harness.errors import DeploymentError
from harness.prompt import Prompter
from harness.tokens import vocabulary

OVERLAP: Mapping[str, tuple[tuple[str, ...], Mapping[str, str]]] = {
    "on": ((), {"SGLANG_ENABLE_DELAY_SAMPLE": "0"}),
    "delayed": ((), {"SGLANG_ENABLE_DELAY_SAMPLE": "1"}),
    "off": (("--disable-overlap-schedule",), {"SGLANG_ENABLE_DELAY_SAMPLE": "0"}),
}


@asynccontextmanager
async def attached(config: SGLang) -> AsyncIterator[SGLangDeployment]:
    """A deployment on a server that runs. Raises `DeploymentError`."""
    key = os.environ.get(config.api_key_variable) or None
    root = config.url.rstrip("/").removesuffix("/v1")
    async with _client(config.url, config.model, key, config.timeout_s) as backend:
        yield await _deployment(
            backend, Attached(root), config.tokenizer, {"how": "attached", "url": config.url}, config.attempts
        )


@asynccontextmanager
async def started(config: SGLangLaunch) -> AsyncIterator[SGLangDeployment]:
    """A deployment on a server of its own. Raises `DeploymentError`."""
    command = await asyncio.to_thread(command_of, config)
    log = Path(tempfile.mkdtemp(prefix="harness-sglang-")) / "server.log"
    life = Launched(command, log, config.ready_within_s, config.restarts)
    await life.start()
    try:
        url = f"http://127.0.0.1:{command.port}/v1"
        async with _client(url, "", None, config.timeout_s) as backend:
            settings = {
                "how": "launched",
                "url": url,
                "overlap": config.overlap,
                "arguments": list(command.arguments),
                "environment": dict(command.environment),
                "log": str(log),
            }
            yield await _deployment(backend, life, config.tokenizer, settings, config.attempts)
    finally:
        await asyncio.to_thread(life.stop)


def command_of(config: SGLangLaunch) -> ServerCommand:
    """The command line, with a port of its own. Raises `DeploymentError` where there is no such interpreter."""
    python = shutil.which(config.interpreter)
    if python is None:
        raise DeploymentError(
            f"there is no Python at {config.interpreter}",
            "the environment that has SGLang",
            "make sglang-cpu builds one for the CPU; for a GPU, name yours in deployment.python",
        )
    model = str(default_weights()) if config.model == DEFAULT_MODEL else config.model
    overlap, environment = OVERLAP[config.overlap]
    cpu = config.device == "cpu"
    return ServerCommand(
        python=Path(python),
        model=model,
        arguments=(*(CPU_ARGUMENTS if cpu else ()), *_arguments(config), *overlap, *config.arguments),
        environment={**(CPU_ENVIRONMENT if cpu else {}), **environment, **config.environment},
        port=config.port or free_port(),
    )


def _arguments(config: SGLangLaunch) -> tuple[str, ...]:
    named = {
        "--dtype": config.dtype,
        "--tp-size": str(config.tp),
        "--dp-size": str(config.dp),
        "--grammar-backend": config.grammar_backend,
    }
    if config.mem_fraction:
        named["--mem-fraction-static"] = str(config.mem_fraction)
    flags = ("--enable-custom-logit-processor",) if config.custom_processors else ()
    return (*(word for pair in named.items() for word in pair), *flags)


def _client(url: str, model: str, key: str | None, timeout_s: float) -> SGLangBackend:
    backend = SGLangBackend(model, url, api_key=key, timeout=timeout_s)
    backend.retries = Retries(attempts=2, first_wait_s=0.5)
    return backend


async def _info(backend: SGLangBackend) -> dict[str, Any]:
    try:
        return await backend.aserver_info()
    except BackendError as error:
        raise DeploymentError(
            f"the server says nothing of itself: {error}",
            "an SGLang server at deployment.url",
            "start one, mend the URL, or use deployment=sglang_launch",
        ) from error


async def _deployment(
    backend: SGLangBackend, life: Life, tokenizer: str, settings: dict[str, Any], attempts: int
) -> SGLangDeployment:
    server = await _info(backend)
    found = sources(server, tokenizer)
    named = await weights_name(server, backend)
    info = await asyncio.to_thread(facts, server, found, named, settings)
    prompter = await asyncio.to_thread(Prompter.load, found.tokenizer)
    known = vocabulary(prompter.tokenizer, info.width, info.stop_ids)
    courier = Courier(known, int(server.get("dp_size") or 1))
    return SGLangDeployment(Parts(info, server, known, prompter, backend, life, courier, attempts))
