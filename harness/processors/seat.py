"""A worker's place beside the decoding loop: the worker, its sequences, and what happens when it dies or hangs.

A worker that dies or hangs is replaced. The sequence it was busy with fails; the others are opened again in the new
worker from the tokens they have, and what they wait for is asked again. Only ending a worker waits, for its exit.
"""

import time
from collections.abc import Callable, Iterable

import numpy as np

from harness.mask import words
from harness.processors.masker import Masked, Rewritten
from harness.processors.messages import (
    CallWork,
    Close,
    Done,
    Failed,
    FromWorker,
    Hello,
    Made,
    Open,
    Opened,
    Prepare,
    Refused,
    Rewrite,
    Row,
    Setup,
    frame,
)
from harness.processors.process import Process
from harness.processors.seated import LIVES, Seated
from harness.processors.segment import IDLE
from harness.request import FailureKind

STARTS = 3
"""How often in a row a worker may die while it starts."""
START_LIMIT_S = 120.0
SILENCE_S = 5.0
"""How much longer than the limits of two calls (both halves of an async one) an idle worker may owe an answer."""


class Seat:
    """One worker, replaced when it must be. `start` starts one."""

    def __init__(self, start: Callable[[], Process], setup: Setup) -> None:
        self._start = start
        self._setup = setup
        self._framed = frame(setup)
        self._width = setup.vocabulary.width
        self._rewrites = isinstance(setup.work, CallWork)
        self._sequences: dict[int, Seated] = {}
        self._free_rows: list[int] = []
        self._starts = 0
        self.refused: Refused | None = None
        """Why no worker can be had; None while one can."""
        self.ready = False
        self.worker: Process = self._begin()

    def __len__(self) -> int:
        return len(self._sequences)

    def open(self, sequence: Seated) -> None:
        """Take a sequence on."""
        sequence.row = self._free_rows.pop() if self._free_rows else len(self._sequences)
        self._sequences[sequence.key] = sequence
        if self.refused:
            sequence.fail("processor", self.refused.found)
        else:
            self._open(sequence)

    def close(self, sequence: Seated) -> None:
        """Let a sequence go."""
        del self._sequences[sequence.key]
        self._free_rows.append(sequence.row)
        self.worker.end.send(Close(sequence.key))

    def prepare(self, sequences: Iterable[Seated]) -> None:
        """Have made what needs no logits, where that was not asked yet."""
        asked = [s for s in sequences if s.failure is None and s.prepared != len(s.tokens)]
        for sequence in asked:
            sequence.prepared = len(sequence.tokens)
        if asked:
            self._send(Prepare(tuple(Row(s.key, s.row, s.untold()) for s in asked)))

    def rewrite(self, sequences: Iterable[Seated]) -> None:
        """Have new logits made from `logits` of each sequence."""
        import torch

        rows = []
        for sequence in sequences:
            if sequence.failure is None and sequence.logits is not None:
                shared = self.worker.segment.row(sequence.row, np.float32, self._width)
                torch.from_numpy(shared).copy_(sequence.logits)
                rows.append(Row(sequence.key, sequence.row, sequence.untold()))
        if rows:
            self._send(Rewrite(tuple(rows)))

    def attend(self) -> None:
        """Take what the worker sent; replace it if it is dead, hangs, or owes an answer for too long."""
        self.hear()
        if self.refused is None and (death := self.worker.death()):
            self.hear()  # its last words may say why
            if self.refused is None:
                key, _ = self.worker.segment.busy_with()
                self._replace(key, "processor", f"the worker {death}")
        elif self.refused is None:
            self._check()

    def hear(self) -> None:
        """Take what the worker sent."""
        for message in self.worker.end.receive():
            self._heard = time.monotonic()
            self._take(message)

    def drop(self, grace_s: float) -> None:
        """End the worker."""
        self.worker.drop(grace_s)

    def _begin(self) -> Process:
        self.ready = False
        self._starts += 1
        self._heard = time.monotonic()
        worker = self._start()
        worker.end.send(self._framed)
        return worker

    def _open(self, sequence: Seated) -> None:
        sequence.told = 0
        sequence.prepared = len(sequence.tokens) if self._setup.ahead else -1
        self._send(Open(sequence.key, sequence.row, sequence.constraint, sequence.untold()))

    def _send(self, message: Open | Prepare | Rewrite) -> None:
        self._heard = time.monotonic()
        self.worker.end.send(message)

    def _take(self, message: FromWorker) -> None:
        match message:
            case Hello():
                self.ready, self._starts = True, 0
            case Refused():
                self._refuse(message)
            case Opened(key=key, compile_s=compile_s):
                if (sequence := self._sequences.get(key)) and sequence.compile_s is None:
                    sequence.compile_s = compile_s
            case Done(rows=rows):
                for row in rows:
                    if sequence := self._sequences.get(row.key):
                        self._answer(sequence, row)

    def _answer(self, sequence: Seated, row: Made | Failed) -> None:
        match row:
            case Failed(failure=kind, message=message):
                sequence.fail(kind, message)
            case Made(tokens=tokens, mask_s=mask_s) if tokens == len(sequence.tokens):
                sequence.answer = (
                    self._rewritten(sequence, mask_s) if self._rewrites else self._masked(sequence, mask_s)
                )
                sequence.logits = None
            case Made():  # of a history that has gone on
                pass

    def _masked(self, sequence: Seated, mask_s: float) -> Masked:
        return Masked(self.worker.segment.row(sequence.row, np.int32, words(self._width)).copy(), mask_s)

    def _rewritten(self, sequence: Seated, mask_s: float) -> Rewritten:
        import torch

        return Rewritten(
            torch.from_numpy(self.worker.segment.row(sequence.row, np.float32, self._width).copy()), mask_s
        )

    def _check(self) -> None:
        now = time.monotonic()
        key, since = self.worker.segment.busy_with()
        limit_s = self._setup.timeout_s
        if key != IDLE and now - since > limit_s:
            self._replace(key, "timeout", f"took longer than {limit_s:g} s, so its worker was ended")
        elif key != IDLE or not self._owes():
            self._heard = now
        elif now - self._heard > (2 * limit_s + SILENCE_S if self.ready else START_LIMIT_S):
            self._replace(IDLE, "timeout", "the worker owed an answer and was silent")

    def _owes(self) -> bool:
        return not self.ready or any(self._waits(s) or s.compile_s is None for s in self._live())

    def _waits(self, sequence: Seated) -> bool:
        asked = sequence.logits is not None if self._rewrites else sequence.prepared == len(sequence.tokens)
        return asked and sequence.answer is None

    def _live(self) -> list[Seated]:
        return [s for s in self._sequences.values() if s.failure is None]

    def _replace(self, key: int, kind: FailureKind, reason: str) -> None:
        """End the worker and start another. `key` is the sequence that it was busy with."""
        self.worker.drop(0.0)
        self._blame(key, kind, reason)
        if not self.ready and self._starts >= STARTS:
            self._refuse(Refused(f"{reason}, {STARTS} times while it started", "a worker that starts", ""))
            return
        live = self._live()
        waiting = [s for s in live if self._waits(s)]
        try:
            self.worker = self._begin()
        except OSError as error:  # no process, memory or file left for another worker
            self._refuse(Refused(f"{reason}, and no other can be started: {error}", "", ""))
            return
        for sequence in live:
            self._open(sequence)
        if self._rewrites:
            self.rewrite(waiting)
        else:
            self.prepare(waiting)

    def _blame(self, key: int, kind: FailureKind, reason: str) -> None:
        if culprit := self._sequences.get(key):
            culprit.fail(kind, reason)
        elif key == IDLE and self.ready:
            for sequence in self._live():
                sequence.lives -= 1
                if not sequence.lives:
                    sequence.fail(kind, f"{reason}, {LIVES} times while it held this request")

    def _refuse(self, refused: Refused) -> None:
        self.refused = refused
        for sequence in self._live():
            sequence.fail("processor", refused.found)
