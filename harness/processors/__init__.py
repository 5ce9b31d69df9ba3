"""The methods `processor` and `async`: the protocols that users write, and the workers that run their code."""

from functools import partial
from typing import TYPE_CHECKING

from harness.errors import ConfigError
from harness.method import AsyncProcessor, Processor

if TYPE_CHECKING:
    from harness.processors.masker import Masker
    from harness.vocabulary import Vocabulary


def masker_for(method: Processor | AsyncProcessor, vocabulary: "Vocabulary") -> "Masker":
    """`method` at work, its workers started and warm. Engines and users' code run in worker processes, so that they
    neither slow the model nor end the run. Raises `ConfigError` where a worker cannot load the engine or the code."""
    from harness.processors.messages import CallWork, EngineWork, Setup
    from harness.processors.process import Process
    from harness.processors.seat import Seat
    from harness.processors.segment import row_bytes
    from harness.processors.worker_masker import WorkerMasker

    _check(method)
    work = CallWork(method.call) if method.call else EngineWork(method.engine)
    ahead = isinstance(method, AsyncProcessor)
    setup = Setup(work, ahead, method.timeout_s, vocabulary)
    start = partial(Process, row_bytes(work, vocabulary.width))
    workers = method.workers if isinstance(method, AsyncProcessor) else 1
    masker = WorkerMasker([Seat(start, setup) for _ in range(workers)], ahead, isinstance(work, CallWork))
    masker.wait_until_started()
    return masker


def _check(method: Processor | AsyncProcessor) -> None:
    if method.timeout_s <= 0:
        raise ConfigError(f"timeout_s: {method.timeout_s:g}", "seconds, more than 0", "give the code time to answer")
    if isinstance(method, AsyncProcessor) and method.workers < 1:
        raise ConfigError(f"workers: {method.workers}", "at least 1 worker", "set workers=1")
