"""Decode steps of a deployment at several batch sizes: the forward curve, and what predictions are checked against.

All sequences of a batch decode together; counted is what they say between the last first token and the first end, so
that prefill, compiling and the first mask are left out. In each turn every method runs once at a batch size, so that
what drifts hits all alike; the first turn is a warm-up.
"""

import asyncio
import statistics
from collections.abc import Mapping, Sequence

import msgspec

from harness.capacity.model import Forward, Method
from harness.constraint import Regex
from harness.deployment import Deployment, DeploymentFactory, DeploymentInfo
from harness.errors import DeploymentError
from harness.method import AsyncProcessor, Native, Processor, Unconstrained
from harness.method import Method as Arm
from harness.request import Completion, Request, Sampling

ENDLESS = Regex("([a-z]{1,12} [0-9]{1,4}, ){100,}")
"""What is said: words and numbers, no fewer than `LONGEST` tokens of them."""
LONGEST = 300


class Measure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is measured: `engine` makes the masks; each sequence says `tokens` in each of `turns` turns."""

    engine: str = "llguidance"
    batches: tuple[int, ...] = (1, 2, 4, 8, 16)
    tokens: int = 48
    turns: int = 3


class Point(msgspec.Struct, frozen=True):
    """One method at one batch size, a value a turn: seconds of a decode step, of making one mask, and for which the
    loop stood still in a step to have masks (empty where there is none to see)."""

    method: Method
    batch: int
    step_s: tuple[float, ...]
    mask_s: tuple[float, ...] = ()
    wait_s: tuple[float, ...] = ()


class Sweep(msgspec.Struct, frozen=True):
    """What was measured, and on which deployment."""

    info: DeploymentInfo
    points: tuple[Point, ...]

    def at(self, method: Method, batch: int) -> Point:
        """One of the points."""
        return next(point for point in self.points if (point.method, point.batch) == (method, batch))

    @property
    def methods(self) -> tuple[Method, ...]:
        return tuple(dict.fromkeys(point.method for point in self.points))

    @property
    def batches(self) -> tuple[int, ...]:
        return tuple(sorted({point.batch for point in self.points}))

    def forward(self) -> Forward:
        """Seconds of a step without masks: the forward pass and all that the loop does besides."""
        return Forward({batch: statistics.median(self.at("none", batch).step_s) for batch in self.batches})


def arms(engine: str, workers: int) -> dict[Method, Arm]:
    """The methods of the harness, by an engine."""
    return {
        "none": Unconstrained(),
        "native": Native(engine),
        "processor": Processor(engine),
        "async": AsyncProcessor(engine, workers=workers),
    }


def sweep(config: DeploymentFactory, measure: Measure, methods: Mapping[Method, Arm]) -> Sweep:
    """Measure every method at every batch size. Raises `DeploymentError` where a request fails or ends early."""

    async def measured() -> Sweep:
        async with config.start() as deployment:
            points = [p for batch in measure.batches for p in await _points(deployment, measure, methods, batch)]
            return Sweep(deployment.info, tuple(points))

    return asyncio.run(measured())


async def _points(
    deployment: Deployment, measure: Measure, methods: Mapping[Method, Arm], batch: int
) -> Sequence[Point]:
    taken: dict[Method, list[Sequence[Completion]]] = {name: [] for name in methods}
    for turn in range(measure.turns + 1):
        for name, arm in methods.items():
            taken[name].append(await _turn(deployment, arm, measure.tokens, batch, turn))
    return [_point(name, batch, turns[1:]) for name, turns in taken.items()]


def _point(method: Method, batch: int, turns: Sequence[Sequence[Completion]]) -> Point:
    step_s = tuple(map(_step_s, turns))
    if method == "none":
        return Point(method, batch, step_s)
    costs = [[(one.cost, one.completion_tokens) for one in done] for done in turns]
    mask_s = [[cost.mask_s / said for cost, said in turn if cost.mask_s is not None] for turn in costs]
    wait_s = [[cost.wait_s / said for cost, said in turn if cost.wait_s is not None] for turn in costs]
    return Point(method, batch, step_s, tuple(map(statistics.fmean, mask_s)), tuple(map(sum, wait_s)))


async def _turn(deployment: Deployment, arm: Arm, tokens: int, batch: int, turn: int) -> Sequence[Completion]:
    prompts = [
        await deployment.tokenize(f"{1000 * turn + 17 * row}, {row}, {turn}, counting on: ") for row in range(batch)
    ]
    requests = [
        Request(f"{turn}.{i}", f"{i}", prompt, ENDLESS, arm, Sampling(tokens), f"{turn}")
        for i, prompt in enumerate(prompts)
    ]
    answers = await asyncio.gather(*map(deployment.generate, requests))
    done = [answer for answer in answers if isinstance(answer, Completion) and answer.finish == "length"]
    if len(done) < batch:
        failed = next(one for one in answers if one not in done)
        raise DeploymentError(f"capacity: a request ended early: {failed}", "texts that go on", "fewer measure.tokens")
    return done


def _step_s(done: Sequence[Completion]) -> float:
    """Seconds of a step while all sequences decode."""
    instants = [[one.timing.sent_s + at for at in one.timing.token_s] for one in done]
    if not all(instants):
        raise DeploymentError("capacity: the deployment gives no times of single tokens", "times of tokens", "stream")
    begin, end = max(each[0] for each in instants), min(each[-1] for each in instants)
    said = sum(begin < at <= end for each in instants for at in each)
    if end <= begin:
        raise DeploymentError(
            f"capacity: {len(done)} sequences never decoded all at once",
            "tokens enough for the last to start before the first ends",
            "raise measure.tokens, or measure smaller batches",
        )
    return (end - begin) * len(done) / said
