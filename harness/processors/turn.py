"""One token of one sequence under a user's async generator, and the sequence that takes such turns.

The generator runs up to its bare `yield` (`begin`), gets the logits and gives new ones (`finish`), ends, and is closed.
"""

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any, cast

from harness.processors.containment import ProcessorFault, checked
from harness.processors.messages import Failed
from harness.processors.watch import Watch

if TYPE_CHECKING:
    import torch

    Generator = AsyncGenerator[object, torch.Tensor]

AsyncProcessor = Callable[[list[int]], object]


class Turn:
    """The user's generator for one token. Faults against the protocol raise `ProcessorFault`."""

    def __init__(self, generator: "Generator") -> None:
        self._generator = generator

    async def begin(self) -> "Turn":
        """Run the generator up to its bare yield."""
        try:
            first = await anext(self._generator)
        except StopAsyncIteration:
            raise ProcessorFault("the async processor ended without a yield") from None
        if first is not None:
            await self.close()
            raise ProcessorFault("the first yield of an async processor is bare: `logits = yield`")
        return self

    async def finish(self, logits: "torch.Tensor", width: int) -> "torch.Tensor":
        """Give it the logits; its new ones, once it has ended."""
        try:
            return checked(await self._last_yield(logits), width)
        finally:
            await self.close()

    async def close(self) -> None:
        await self._generator.aclose()

    async def _last_yield(self, logits: "torch.Tensor") -> object:
        try:
            result = await self._generator.asend(logits)
        except StopAsyncIteration:
            raise ProcessorFault("the async processor ended without yielding new logits") from None
        try:
            await anext(self._generator)
        except StopAsyncIteration:
            return result
        raise ProcessorFault("the async processor yields again after its new logits")


class Sequence:
    """A sequence in a worker: its tokens so far and the turn that waits for logits, if there is one."""

    def __init__(self, key: int, processor: AsyncProcessor, tokens: tuple[int, ...], watch: Watch, limit_s: float):
        self._key = key
        self._processor = processor
        self._inputs = list(tokens)
        self._watch = watch
        self._limit_s = limit_s
        self._begun: asyncio.Task[tuple[Turn, float] | Failed] | None = None

    @property
    def tokens(self) -> int:
        """How many tokens were said."""
        return len(self._inputs)

    def begin(self, tokens: tuple[int, ...]) -> None:
        """`tokens` were said: begin the turn for the next one."""
        self.close()
        self._inputs += tokens
        self._begun = asyncio.create_task(self._begin(list(self._inputs)))

    async def finish(self, logits: "torch.Tensor", width: int) -> "tuple[torch.Tensor, float] | Failed":
        """The new logits, and the seconds that both halves of the turn took."""
        if self._begun is None:
            self.begin(())
        assert self._begun is not None
        begun, self._begun = await self._begun, None
        if isinstance(begun, Failed):
            return begun
        turn, begin_s = begun
        clock = self._watch.clock(self._key)
        result = await clock.within(self._limit_s, turn.finish(logits, width))
        return result if isinstance(result, Failed) else (result, begin_s + clock.spent_s())

    def close(self) -> asyncio.Task[Any] | None:
        """Drop the turn that waits, if there is one; the task that closes its generator."""
        begun, self._begun = self._begun, None
        return asyncio.create_task(self._drop(begun)) if begun else None

    async def _begin(self, inputs: list[int]) -> tuple[Turn, float] | Failed:
        clock = self._watch.clock(self._key)

        async def begin() -> Turn:
            return await Turn(_generator(self._processor(inputs))).begin()

        turn = await clock.within(self._limit_s, begin())
        return turn if isinstance(turn, Failed) else (turn, clock.spent_s())

    async def _drop(self, begun: asyncio.Task[tuple[Turn, float] | Failed]) -> None:
        begun.cancel()
        await asyncio.wait({begun})
        if not begun.cancelled() and not isinstance(result := begun.result(), Failed):
            await self._watch.clock(self._key).within(self._limit_s, result[0].close())


def _generator(made: object) -> "Generator":
    if inspect.isasyncgen(made):
        return cast("Generator", made)
    if inspect.iscoroutine(made):
        made.close()
        raise ProcessorFault("the async processor is an async function without yield; wanted an async generator")
    raise ProcessorFault(f"the async processor gave {type(made).__name__}; wanted an async generator")
