"""A worker for async generators: many sequences take turns on one event loop."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from harness.processors.channel import WorkerEnd
from harness.processors.containment import contained
from harness.processors.messages import Close, Done, Failed, Made, Open, Opened, Prepare, Rewrite, Row, Setup, ToWorker
from harness.processors.protocols import Factory
from harness.processors.segment import Segment
from harness.processors.turn import AsyncProcessor, Turn
from harness.processors.watch import Watch

if TYPE_CHECKING:
    import torch


@dataclass(slots=True, eq=False)
class _Sequence:
    """The user's processor, the tokens that were said, and the turn that was begun for the next one."""

    processor: AsyncProcessor
    inputs: list[int] = field(default_factory=list)
    turn: Turn | None = None


class Turns:
    """Serves the sequences of one worker until the other end of its channel is gone."""

    def __init__(self, factory: Factory, setup: Setup, end: WorkerEnd, segment: Segment) -> None:
        self._factory = factory
        self._vocabulary = setup.vocabulary
        self._limit_s = setup.timeout_s
        self._end = end
        self._segment = segment
        self._watch = Watch(segment)
        self._sequences: dict[int, _Sequence] = {}
        self._rewriting: set[asyncio.Task[None]] = set()

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        gone = asyncio.Event()

        def read() -> None:
            if not self._end.read():
                gone.set()
            self._take()

        self._take()
        asyncio.get_running_loop().add_reader(self._end.fileno(), read)
        await gone.wait()

    def _take(self) -> None:
        for message in self._end.taken():
            self._act(message)

    def _act(self, message: ToWorker) -> None:
        match message:
            case Open():
                self._open(message)
            case Prepare(rows=rows):
                for row in rows:
                    self._begin(row.key, row.tokens)
            case Rewrite(rows=rows):
                task = asyncio.create_task(self._rewrite(rows))
                self._rewriting.add(task)
                task.add_done_callback(self._rewriting.discard)
            case Close(key=key):
                if (sequence := self._sequences.pop(key, None)) and sequence.turn:
                    sequence.turn.drop()
            case Setup():
                raise AssertionError("a worker is set up once")

    def _open(self, message: Open) -> None:
        started = time.perf_counter()
        with self._segment.at(message.key):
            processor = contained(message.key, lambda: self._factory(message.constraint, self._vocabulary))
        if isinstance(processor, Failed):
            self._end.send(Done((processor,)))
            return
        self._end.send(Opened(message.key, time.perf_counter() - started))
        self._sequences[message.key] = _Sequence(processor)
        self._begin(message.key, message.tokens)

    def _begin(self, key: int, tokens: tuple[int, ...]) -> Turn | None:
        """`tokens` were said: begin the turn for the next one. None where the sequence is not open."""
        sequence = self._sequences.get(key)
        if sequence is None:
            return None
        if sequence.turn:
            sequence.turn.drop()
        sequence.inputs += tokens
        width = self._vocabulary.width
        sequence.turn = Turn(key, sequence.processor, list(sequence.inputs), self._watch, width)
        return sequence.turn

    async def _rewrite(self, rows: tuple[Row, ...]) -> None:
        turns = [self._given(row) for row in rows]
        await self._finished([turn for turn in turns if turn])
        self._end.send(Done(tuple(self._answer(row, turn) for row, turn in zip(rows, turns, strict=True))))

    def _given(self, row: Row) -> Turn | None:
        """The turn of a row, with its logits."""
        sequence = self._sequences.get(row.key)
        begun = sequence.turn if sequence and not row.tokens else None
        turn = begun or self._begin(row.key, row.tokens)
        if sequence and turn:
            sequence.turn = None
            turn.give(self._logits(row).clone())
        return turn

    async def _finished(self, turns: list[Turn]) -> None:
        """Wait until all turns are done or late."""
        pending = {turn.task: turn for turn in turns}
        while pending:
            left_s = min(turn.left_s(self._limit_s) for turn in pending.values())
            done, _ = await asyncio.wait(pending, timeout=max(left_s, 0.0))
            for task in done:
                del pending[task]
            for task in [task for task, turn in pending.items() if turn.left_s(self._limit_s) <= 0]:
                pending.pop(task).give_up(self._limit_s)

    def _answer(self, row: Row, turn: Turn | None) -> Made | Failed:
        sequence = self._sequences.get(row.key)
        if sequence is None or turn is None:  # closed meanwhile, and its row may be another's
            return Failed(row.key, "processor", "the sequence is not open")
        result = turn.result()
        if isinstance(result, Failed):
            return result
        logits, mask_s = result
        self._logits(row).copy_(logits)
        return Made(row.key, len(sequence.inputs), mask_s)

    def _logits(self, row: Row) -> "torch.Tensor":
        import torch

        return torch.from_numpy(self._segment.row(row.row, np.float32, self._vocabulary.width))
