"""What masks cost the embedded deployment once they are made: its own code, timed on logits of its own width."""

import random
import statistics
import time
from collections.abc import Callable, Mapping

import numpy as np
import torch

from harness.deployment import DeploymentInfo
from harness.deployments.embedded.config import Embedded, thread_count
from harness.deployments.embedded.row import Row, Ticket
from harness.deployments.embedded.speaking import speak
from harness.deployments.embedded.steering import steer
from harness.mask import words
from harness.method import Unconstrained
from harness.processors.masker import Masked, Steering
from harness.request import Request, Sampling

TIMES = 40


def apply_s(config: Embedded, info: DeploymentInfo, batch: int, seed: int) -> float:
    """Seconds that a mask costs on its row: putting it there, and finding what it did to the token that is said. The
    median of steps of `batch` rows, each measured with masks and without. It sets the number of the process's CPU
    threads to the deployment's."""
    torch.set_num_threads(thread_count(config.threads))
    logits = torch.randn((batch, info.width), generator=torch.Generator().manual_seed(seed)).to(info.device)
    bits = np.random.default_rng(seed).integers(0, 2**32, (batch, words(info.width)), dtype=np.uint32).view(np.int32)
    masks: dict[int, Steering] = {place: Masked(mask, 0.0) for place, mask in enumerate(bits)}
    rows = [_row() for _ in range(batch)]

    def step(answers: Mapping[int, Steering]) -> None:
        speak(rows, logits, steer(logits, answers), answers)

    with torch.inference_mode():
        more = [_seconds(lambda: step(masks)) - _seconds(lambda: step({})) for _ in range(TIMES)]
    return max(statistics.median(more), 0.0) / batch


def _row() -> Row:
    request = Request("capacity", "", (0,), None, Unconstrained(), Sampling(1))
    return Row(Ticket(request), None, 0, 0, 0, [0], random.Random(0))


def _seconds(action: Callable[[], None]) -> float:
    """`speak` hands its numbers to the host, so that what runs on a device is over when it returns."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started
