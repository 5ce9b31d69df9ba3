"""One token of one sequence under a user's async generator.

The generator runs up to its bare `yield`, gets the logits, gives new ones, ends, and is closed: one task from its
start, before the logits are there, to its end.
"""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, cast

from harness.processors.containment import ProcessorFault, TooSlow, checked, failed
from harness.processors.messages import Failed
from harness.processors.watch import Watch

if TYPE_CHECKING:
    import torch

    Generator = AsyncGenerator[object, torch.Tensor]

AsyncProcessor = Callable[[list[int]], object]


class Turn:
    """Begins at once; `give` it the logits, wait for `task`, and read `result`."""

    def __init__(self, key: int, processor: AsyncProcessor, inputs: list[int], watch: Watch, width: int) -> None:
        self._key = key
        self._width = width
        self._clock = watch.clock(key)
        self._logits: asyncio.Future[torch.Tensor] = asyncio.get_running_loop().create_future()
        self._late: Failed | None = None
        self.task = asyncio.create_task(self._clock.run(self._run(processor, inputs)))

    def give(self, logits: "torch.Tensor") -> None:
        """The logits are there; the processor may change them."""
        self._logits.set_result(logits)

    def left_s(self, limit_s: float) -> float:
        """How much of `limit_s` seconds the half that is running has left."""
        return limit_s - self._clock.half_s()

    def give_up(self, limit_s: float) -> None:
        """It has taken longer than `limit_s`: end it, whether the user's code lets itself be cancelled or not."""
        self._late = failed(self._key, TooSlow(f"the processor took longer than {limit_s:g} s"))
        self.drop()

    def drop(self) -> None:
        """Nobody wants the result any more; the generator is closed."""
        self.task.cancel()

    def result(self) -> "tuple[torch.Tensor, float] | Failed":
        """The new logits and the seconds that both halves took, or what went wrong."""
        if self._late is not None:
            return self._late
        if self.task.cancelled():
            return Failed(self._key, "processor", "the processor cancelled its own task")
        made = self.task.result()
        return made if isinstance(made, Failed) else (made, self._clock.total_s())

    async def _run(self, processor: AsyncProcessor, inputs: list[int]) -> "torch.Tensor":
        generator = _generator(processor(inputs))
        try:
            await _bare_yield(generator)
            self._clock.pause()
            return checked(await _last_yield(generator, await self._logits), self._width)
        finally:
            await generator.aclose()


async def _bare_yield(generator: "Generator") -> None:
    try:
        first = await anext(generator)
    except StopAsyncIteration:
        raise ProcessorFault("the async processor ended without a yield") from None
    if first is not None:
        raise ProcessorFault("the first yield of an async processor is bare: `logits = yield`")


async def _last_yield(generator: "Generator", logits: "torch.Tensor") -> object:
    try:
        result = await generator.asend(logits)
    except StopAsyncIteration:
        raise ProcessorFault("the async processor ended without yielding new logits") from None
    try:
        await anext(generator)
    except StopAsyncIteration:
        return result
    raise ProcessorFault("the async processor yields again after its new logits")


def _generator(made: object) -> "Generator":
    if inspect.isasyncgen(made):
        return cast("Generator", made)
    if inspect.iscoroutine(made):
        made.close()
        raise ProcessorFault("the async processor is an async function without yield; wanted an async generator")
    raise ProcessorFault(f"the async processor gave {type(made).__name__}; wanted an async generator")
