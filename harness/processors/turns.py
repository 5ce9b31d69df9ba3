"""A worker for async generators: many sequences take turns on one event loop."""

import asyncio
import time
from typing import Any

import numpy as np

from harness.processors.channel import WorkerEnd
from harness.processors.containment import contained
from harness.processors.messages import Close, Done, Failed, Made, Open, Opened, Prepare, Rewrite, Row, Setup, ToWorker
from harness.processors.protocols import Factory
from harness.processors.segment import Segment
from harness.processors.turn import Sequence
from harness.processors.watch import Watch


class Turns:
    """Serves the sequences of one worker until the other end of its channel is gone."""

    def __init__(self, factory: Factory, setup: Setup, end: WorkerEnd, segment: Segment) -> None:
        self._factory = factory
        self._setup = setup
        self._end = end
        self._segment = segment
        self._watch = Watch(segment)
        self._sequences: dict[int, Sequence] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

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
                    if sequence := self._sequences.get(row.key):
                        sequence.begin(row.tokens)
            case Rewrite(rows=rows):
                self._keep(asyncio.create_task(self._rewrite(rows)))
            case Close(key=key):
                sequence = self._sequences.pop(key, None)
                self._keep(sequence.close() if sequence else None)
            case Setup():
                raise AssertionError("a worker is set up once")

    def _open(self, message: Open) -> None:
        started = time.perf_counter()
        with self._segment.at(message.key):
            processor = contained(message.key, lambda: self._factory(message.constraint, self._setup.vocabulary))
        if isinstance(processor, Failed):
            self._end.send(Done((processor,)))
            return
        self._end.send(Opened(message.key, time.perf_counter() - started))
        sequence = Sequence(message.key, processor, message.tokens, self._watch, self._setup.timeout_s)
        self._sequences[message.key] = sequence
        sequence.begin(())

    async def _rewrite(self, rows: tuple[Row, ...]) -> None:
        answers = await asyncio.gather(*(self._answer(row) for row in rows))
        self._end.send(Done(tuple(answers)))

    async def _answer(self, row: Row) -> Made | Failed:
        import torch

        sequence = self._sequences.get(row.key)
        if sequence is None:
            return Failed(row.key, "processor", "the sequence is not open")
        if row.tokens:
            sequence.begin(row.tokens)
        width = self._setup.vocabulary.width
        shared = torch.from_numpy(self._segment.row(row.row, np.float32, width))
        result = await sequence.finish(shared.clone(), width)
        if isinstance(result, Failed):
            return result
        logits, mask_s = result
        if row.key in self._sequences:  # else it was closed meanwhile, and its row may be another's
            shared.copy_(logits)
        return Made(row.key, sequence.tokens, mask_s)

    def _keep(self, task: asyncio.Task[Any] | None) -> None:
        """Hold a task until it is done; the event loop alone would not."""
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
