"""How much of the time that masks take does `async` hide, and what throughput is left of `none`?

    python benchmarks/async_overlap.py [examples] [rounds]

`extraction` on the default model, one model thread, batch 8, one worker. All arms say the same number of tokens for
each example (the length of its constrained answer; `none` may end earlier by itself), so that answers of different
length do not pass for speed. Rounds alternate the order of the arms; medians are shown. The last column holds what the
loop reports against the clock: by how much an arm's time a token exceeds that of `none`. It should be what the loop
says it stood still for masks and applied them.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.deployment import Deployment
from harness.deployments.embedded.config import Embedded
from harness.exchange import questions
from harness.method import AsyncProcessor, Method, Native, Processor, Unconstrained, arm_name
from harness.prompt import Prompter
from harness.request import Completion, Request, Sampling
from harness.task import Task, TaskConfig, resolve

BATCH = 8
ARMS: tuple[Method, ...] = (
    Unconstrained(),
    Processor("lm_format_enforcer"),
    AsyncProcessor("lm_format_enforcer"),
    Native("llguidance"),
    AsyncProcessor("llguidance"),
)
TASK = Path(__file__).parent.parent / "configs" / "task" / "extraction.yaml"


@dataclass(frozen=True)
class Ask:
    """One example: its prompt and how many tokens each arm says."""

    example: str
    prompt_ids: tuple[int, ...]
    tokens: int


@dataclass(frozen=True)
class Timed:
    """One arm in one round: seconds, tokens, and the sums of what the loop reports."""

    seconds: float
    tokens: int
    forward_s: float
    mask_s: float
    wait_s: float
    apply_s: float
    answers: tuple[tuple[int, ...], ...]

    @property
    def rate(self) -> float:
        return self.tokens / self.seconds


async def answers(deployment: Deployment, task: Task, method: Method, asks: Sequence[Ask], name: str) -> Timed:
    """Ask everything, `BATCH` at a time."""
    room = asyncio.Semaphore(BATCH)

    async def one(ask: Ask) -> Completion:
        constraint = task.constraints[ask.example]
        cache = f"{name}|{arm_name(method)}"
        async with room:
            sampling = Sampling(ask.tokens)
            request = Request(
                f"{cache}|{ask.example}", ask.example, ask.prompt_ids, constraint, method, sampling, cache
            )
            answer = await deployment.generate(request)
        if not isinstance(answer, Completion):
            raise SystemExit(f"{arm_name(method)}: {answer.message}")
        return answer

    began = time.perf_counter()
    said = await asyncio.gather(*map(one, asks))
    seconds = time.perf_counter() - began

    def total(column: str) -> float:
        return sum(getattr(one.cost, column) or 0.0 for one in said)

    return Timed(
        seconds,
        sum(one.completion_tokens for one in said),
        total("forward_s"),
        total("mask_s"),
        total("wait_s"),
        total("apply_s"),
        tuple(one.token_ids for one in said),
    )


async def asks_of(deployment: Deployment, task: Task, count: int) -> list[Ask]:
    """The first examples, each with the length of its constrained answer."""
    budget = task.answer_section.max_tokens
    asked = questions(task, Prompter.load(deployment.info.tokenizer), deployment.info.context)[:count]
    whole = [Ask(question.row.id, question.prompt.ids, budget) for question in asked]
    lengths = await answers(deployment, task, Native("llguidance"), whole, "lengths")
    return [Ask(ask.example, ask.prompt_ids, len(ids)) for ask, ids in zip(whole, lengths.answers, strict=True)]


async def measured(count: int, rounds: int) -> dict[str, list[Timed]]:
    task = resolve(msgspec.yaml.decode(TASK.read_bytes(), type=TaskConfig), 0)
    timed: dict[str, list[Timed]] = {arm_name(arm): [] for arm in ARMS}
    async with Embedded(threads=1, max_batch=BATCH).start() as deployment:
        asks = await asks_of(deployment, task, count)
        for arm in ARMS:
            await answers(deployment, task, arm, asks[:BATCH], "warm")
        for number in range(rounds):
            order = ARMS if number % 2 == 0 else ARMS[::-1]
            for arm in order:
                timed[arm_name(arm)].append(await answers(deployment, task, arm, asks, f"round {number}"))
    return timed


def show(timed: dict[str, list[Timed]]) -> None:
    none = statistics.median(one.rate for one in timed["none"])
    print(
        f"{'arm':28}{'tok/s':>8}{'of none':>9}{'mask us/tok':>13}{'hidden':>8}"
        f"{'forward':>9}{'stood still':>13}{'apply':>8}{'loss by clock, us/tok':>24}"
    )
    for name, runs in timed.items():
        rate = statistics.median(one.rate for one in runs)
        tokens = sum(one.tokens for one in runs)

        def per_token(column: str, runs: list[Timed] = runs, tokens: int = tokens) -> float:
            return 1e6 * float(sum(getattr(one, column) for one in runs)) / tokens

        hidden = 1 - per_token("wait_s") / per_token("mask_s") if per_token("mask_s") else float("nan")
        print(
            f"{name:28}{rate:8.1f}{rate / none:9.3f}{per_token('mask_s'):13.0f}{hidden:8.2f}"
            f"{per_token('forward_s'):9.0f}{per_token('wait_s'):13.0f}{per_token('apply_s'):8.0f}"
            f"{1e6 / rate - 1e6 / none:24.0f}"
        )
    compare("async/lm_format_enforcer", "processor/lm_format_enforcer", timed)
    compare("async/llguidance", "native/llguidance", timed)


def compare(one: str, other: str, timed: dict[str, list[Timed]]) -> None:
    """The same engine must lead to the same tokens, whenever and wherever it runs."""
    pairs = [
        pair for a, b in zip(timed[one], timed[other], strict=True) for pair in zip(a.answers, b.answers, strict=True)
    ]
    print(f"{one} and {other}: the same tokens in {sum(a == b for a, b in pairs)} of {len(pairs)} answers")


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    show(asyncio.run(measured(*(arguments or [48, 3]))))
