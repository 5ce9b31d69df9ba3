"""The thread that drives the model: it takes what callers hand in and makes a token for everybody, again and again."""

import queue
import threading

import torch

from harness.deployments.embedded.batch import Batch
from harness.deployments.embedded.callers import give_up
from harness.deployments.embedded.row import Ticket
from harness.deployments.embedded.scoring import Scorer, ScoreTicket
from harness.deployments.embedded.step import Stepper
from harness.errors import DeploymentError
from harness.processors.masker import Masker

_GLANCE_S = 0.002
"""How often to look whether a constraint is compiled, while there is nothing else to do."""

Job = tuple[Ticket, Masker | None] | ScoreTicket


class Engine:
    """What the loop drives."""

    def __init__(self, batch: Batch, stepper: Stepper, scorer: Scorer) -> None:
        self._batch, self._stepper, self._scorer = batch, stepper, scorer

    @property
    def busy(self) -> bool:
        """Whether a step would compute something."""
        return self._batch.running or bool(self._scorer.waiting)

    @property
    def unanswered(self) -> list[Ticket | ScoreTicket]:
        """Everybody who waits for an answer."""
        return [*self._batch.tickets(), *self._scorer.waiting]

    def take(self, job: Job) -> None:
        """Somebody asks."""
        match job:
            case ScoreTicket():
                self._scorer.waiting.append(job)
            case (ticket, masker):
                self._batch.arrive(ticket, masker)

    def step(self) -> None:
        """Score once, seat those who are ready, and let everybody who runs say a token."""
        self._scorer.serve()
        self._batch.drop_cancelled()
        self._batch.seat()
        if self._batch.running:
            self._batch.hear(self._stepper.step(self._batch.passes()))


class Loop:
    """Drives an engine in a thread of its own, with so many CPU threads for the model."""

    def __init__(self, engine: Engine, threads: int) -> None:
        self._engine, self._threads = engine, threads
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._door = threading.Lock()
        self._closed: DeploymentError | None = None
        self._thread = threading.Thread(target=self._live, name="decoding-loop", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Hand in a request. Raises `DeploymentError` if the loop has ended."""
        with self._door:
            if self._closed is not None:
                raise self._closed
            self._jobs.put(job)

    def stop(self) -> None:
        """End the loop after its current step; callers who still wait get a `DeploymentError`."""
        self._jobs.put(None)
        self._thread.join()

    @torch.inference_mode()
    def _live(self) -> None:
        torch.set_num_threads(self._threads)
        try:
            while self._take_jobs():
                self._engine.step()
            self._close(DeploymentError("the deployment was stopped while a request was running"))
        except BaseException as error:  # whatever it is (a panic in Rust is no Exception), no caller may wait for ever
            died = DeploymentError(f"the decoding loop died: {error!r}", "", "start the deployment again")
            died.__cause__ = error
            self._close(died)

    def _take_jobs(self) -> bool:
        """Take everything that was handed in; with nothing else to do, wait for it. False when it is time to stop."""
        wait_s = 0.0 if self._engine.busy else _GLANCE_S if self._engine.unanswered else None
        while True:
            try:
                job = self._jobs.get(block=wait_s != 0.0, timeout=wait_s)
            except queue.Empty:
                return True
            if job is None:
                return False
            self._engine.take(job)
            wait_s = 0.0

    def _close(self, error: DeploymentError) -> None:
        with self._door:
            self._closed = error
        while not self._jobs.empty():
            if (job := self._jobs.get()) is not None:
                _refuse(job, error)
        for ticket in self._engine.unanswered:
            _refuse(ticket, error)


def _refuse(job: Job | Ticket, error: DeploymentError) -> None:
    match job:
        case ScoreTicket():
            give_up(job.future, error)
        case Ticket() as ticket:
            give_up(ticket.future, error)
        case (ticket, _):
            give_up(ticket.future, error)
