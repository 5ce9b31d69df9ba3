"""How requests arrive."""

import asyncio
from collections.abc import Awaitable, Callable

from harness.load import Closed, Load, Open, drive


def _gather(
    items: list[int], ask: Callable[[int], Awaitable[int]], load: Load, seed: int = 0
) -> list[tuple[int, float]]:
    async def run() -> list[tuple[int, float]]:
        return [pair async for pair in drive(items, ask, load, seed)]

    return asyncio.run(run())


def test_a_closed_loop_never_has_more_at_once_than_it_says_and_as_many_as_it_can() -> None:
    busy, most = 0, 0

    async def ask(item: int) -> int:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await asyncio.sleep(0.002)
        busy -= 1
        return item

    results = _gather(list(range(30)), ask, Closed(concurrency=4))
    assert most == 4
    assert sorted(item for item, _ in results) == list(range(30))


def test_an_open_loop_does_not_wait_for_answers() -> None:
    gate: list[asyncio.Event] = []

    async def ask(item: int) -> int:
        if not gate:
            gate.append(asyncio.Event())
        if item == 4:
            gate[0].set()
        await gate[0].wait()
        return item

    results = _gather(list(range(5)), ask, Open(rate=500.0))
    assert sorted(item for item, _ in results) == list(range(5))
    assert all(late_s >= 0 for _, late_s in results)


def test_leaving_the_loop_cancels_what_is_under_way() -> None:
    cancelled: list[int] = []

    async def ask(item: int) -> int:
        try:
            await asyncio.sleep(0 if item == 0 else 60)
        except asyncio.CancelledError:
            cancelled.append(item)
            raise
        return item

    async def run() -> None:
        arriving = drive(range(4), ask, Closed(concurrency=4), 0)
        async for _ in arriving:
            break
        await arriving.aclose()

    asyncio.run(run())
    assert sorted(cancelled) == [1, 2, 3]
