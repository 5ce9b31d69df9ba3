"""What can be set on the embedded deployment, and how it is started."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal

import msgspec

from harness.deployments.embedded.weights import DEFAULT_MODEL
from harness.errors import ConfigError

if TYPE_CHECKING:
    from harness.deployments.embedded.deployment import EmbeddedDeployment

Dtype = Literal["bfloat16", "float16", "float32"]


class Embedded(msgspec.Struct, frozen=True, tag="embedded", tag_field="kind", forbid_unknown_fields=True):
    """A model in this process.

    `model`: the default weights, a local folder, or a hub name. `device`: `auto` (CUDA where there is one), `cpu`,
    `cuda`, `cuda:1`. `threads`: CPU threads of the forward pass; 0 is one fewer than there are cores, so that mask
    workers and the harness have one and every arm runs under the same condition. `max_batch`: sequences that run at
    once. `context`: the longest sequence in tokens, prompt and budget together. `prefill_chunk`: prompt tokens computed
    in one step, so that joining requests do not hold up the others for long. `kept`: ended sequences, beyond the batch,
    whose keys and values stay for reuse. `seed` goes into every request's own random stream.

    `exact`: each sequence is computed alone and nothing is reused, so that a result is the same, bit for bit, whatever
    else runs; without it, batch mates and reuse change logits by floating-point noise.
    """

    model: str = DEFAULT_MODEL
    dtype: Dtype = "bfloat16"
    device: str = "auto"
    threads: int = 0
    max_batch: int = 32
    context: int = 2048
    prefill_chunk: int = 256
    kept: int = 16
    exact: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("threads", 0), ("max_batch", 1), ("context", 2), ("prefill_chunk", 1), ("kept", 0)):
            if (value := getattr(self, name)) < least:
                raise ConfigError(f"deployment.{name}: {value}", f"at least {least}", "mend the value")

    @asynccontextmanager
    async def start(self) -> AsyncIterator["EmbeddedDeployment"]:
        """Load the model and run its loop until the block ends. Raises `DeploymentError`."""
        from harness.deployments.embedded.deployment import started

        async with started(self) as deployment:
            yield deployment


def thread_count(threads: int) -> int:
    """`threads`, or one fewer than the cores this process may use (at least 1)."""
    return threads or max(1, len(os.sched_getaffinity(0)) - 1)
