"""A real SGLang server on the CPU, one for all live tests. Where its environment is missing, they fail and say so."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.deployments.embedded.weights import default_weights
from harness.deployments.sglang import SGLangBackend
from harness.deployments.sglang.launch import CPU_ARGUMENTS, CPU_ENVIRONMENT, Server, ServerCommand, launched

SERVER_PYTHON = Path(__file__).resolve().parents[2] / ".venv-sglang" / "bin" / "python"


def cpu_server(model: Path, *arguments: str, **environment: str) -> ServerCommand:
    """A server of `model` in float32, so that its numbers can be held against others to four digits, that runs
    processors and gives them a fresh history."""
    ours = (*CPU_ARGUMENTS, "--dtype", "float32", "--enable-custom-logit-processor", *arguments)
    return ServerCommand(
        SERVER_PYTHON, str(model), ours, CPU_ENVIRONMENT | {"SGLANG_ENABLE_DELAY_SAMPLE": "1"} | environment
    )


@pytest.fixture(scope="session")
def model() -> Path:
    """The folder of the default model."""
    return default_weights()


@pytest.fixture(scope="session")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server that the live tests share."""
    with launched(cpu_server(model), tmp_path_factory.mktemp("sglang") / "server.log") as running:
        yield running


@pytest.fixture(scope="session")
def backend(server: Server, model: Path) -> Iterator[SGLangBackend]:
    """A client of it."""
    with SGLangBackend(model.name, server.base_url) as client:
        yield client
