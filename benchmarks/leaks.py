"""Does anything grow over ten thousand requests?

    python benchmarks/leaks.py [requests]

The embedded deployment answers label questions with the default model, `native`, `processor` and `async` in turn, under
more constraints than any cache keeps. After every tenth it is shown what this process and its workers hold: resident
memory, processes, open files, mapped segments of shared memory. All should level off; what caches may keep is bounded.
"""

import asyncio
import sys
import time
from collections.abc import Iterator

import psutil

from harness.constraint import Labels
from harness.deployment import Deployment
from harness.deployments.embedded.config import Embedded
from harness.method import AsyncProcessor, Method, Native, Processor
from harness.request import Completion, Request, Sampling

ARMS: tuple[Method, ...] = (
    Native("llguidance"),
    Processor("lm_format_enforcer"),
    AsyncProcessor("lm_format_enforcer"),
    Native("xgrammar"),
)
CONSTRAINTS = 1000
BATCH = 32
WIDTH = 13


def requests(count: int, prompt: tuple[int, ...], part: int) -> Iterator[Request]:
    """Short questions, each arm in turn, each constraint again after `CONSTRAINTS` requests."""
    for place in range(count):
        number = part * count + place
        labels = Labels((f"yes {number % CONSTRAINTS}", "no"))
        name = f"r{number}"
        yield Request(name, name, (*prompt, 100 + number % 7), labels, ARMS[number % len(ARMS)], Sampling(4), "leaks")


async def ask(deployment: Deployment, some: Iterator[Request]) -> None:
    """Ask them all, `BATCH` at a time."""
    room = asyncio.Semaphore(BATCH)

    async def one(request: Request) -> None:
        async with room:
            answer = await deployment.generate(request)
        if not isinstance(answer, Completion):
            raise SystemExit(f"{request.id}: {answer.message}")

    await asyncio.gather(*map(one, some))


def held() -> str:
    """What this process and its workers hold now."""
    me = psutil.Process()
    workers = me.children(recursive=True)
    numbers = (
        me.memory_info().rss >> 20,
        sum(worker.memory_info().rss for worker in workers) >> 20,
        len(workers),
        me.num_fds() + sum(worker.num_fds() for worker in workers),
        me.num_threads(),
        sum("memfd" in one.path for one in me.memory_maps(grouped=False)),
    )
    return "".join(f"{number:{WIDTH}}" for number in numbers)


async def watch(count: int) -> None:
    async with Embedded(max_batch=BATCH).start() as deployment:
        prompt = await deployment.tokenize("Is it? Say yes with its number, or no: ")
        names = ("requests", "own MiB", "workers MiB", "processes", "files", "threads", "shared")
        print("".join(name.rjust(WIDTH) for name in names))
        began, each = time.perf_counter(), count // 10
        for part in range(10):
            await ask(deployment, requests(each, prompt, part))
            print(f"{(part + 1) * each:{WIDTH}}{held()}  {time.perf_counter() - began:6.0f} s", flush=True)
    print("ended".rjust(WIDTH) + held())


if __name__ == "__main__":
    asyncio.run(watch(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
