"""How requests arrive: a closed loop (so many at once) or an open one (Poisson arrivals, whatever the server does)."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Annotated, TypeVar

import msgspec

T = TypeVar("T")
R = TypeVar("R")


class Closed(msgspec.Struct, frozen=True, tag="closed", tag_field="kind", forbid_unknown_fields=True):
    """`concurrency` requests at once; the next is sent when one has come back."""

    concurrency: Annotated[int, msgspec.Meta(ge=1)] = 8


class Open(msgspec.Struct, frozen=True, tag="open", tag_field="kind", forbid_unknown_fields=True):
    """Requests arrive at random, `rate` a second on average (exponential gaps), and none waits for another."""

    rate: Annotated[float, msgspec.Meta(gt=0)]


Load = Closed | Open


async def drive(
    items: Sequence[T], ask: Callable[[T], Awaitable[R]], load: Load, seed: int
) -> AsyncGenerator[tuple[R, float], None]:
    """Ask for every item as `load` says; yields each result, with its lateness in seconds, as it comes. Leaving the
    iteration cancels what is under way."""
    match load:
        case Closed(concurrency=concurrency):
            asked = _closed(items, ask, concurrency)
        case Open(rate=rate):
            asked = _open(items, ask, rate, random.Random(seed))
    tasks = [asyncio.ensure_future(one) for one in asked]
    try:
        for done in asyncio.as_completed(tasks):
            yield await done
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _closed(items: Sequence[T], ask: Callable[[T], Awaitable[R]], concurrency: int) -> list[Awaitable[tuple[R, float]]]:
    gate = asyncio.Semaphore(concurrency)

    async def one(item: T) -> tuple[R, float]:
        async with gate:
            return await ask(item), 0.0

    return [one(item) for item in items]


def _open(
    items: Sequence[T], ask: Callable[[T], Awaitable[R]], rate: float, rng: random.Random
) -> list[Awaitable[tuple[R, float]]]:
    clock = asyncio.get_running_loop().time
    start, at = clock(), 0.0

    async def one(item: T, due_s: float) -> tuple[R, float]:
        await asyncio.sleep(max(0.0, due_s - clock()))
        late_s = clock() - due_s
        return await ask(item), late_s

    asked: list[Awaitable[tuple[R, float]]] = []
    for item in items:
        at += rng.expovariate(rate)
        asked.append(one(item, start + at))
    return asked
