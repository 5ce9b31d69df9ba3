"""Decode throughput of the embedded deployment at several batch sizes: the forward curve, and what the prediction is
checked against.

All sequences of a batch decode together; counted is what they say between the last first token and the first end, so
that prefill, compiling and the first mask are left out. Methods take turns at each batch size; medians over turns.
"""

import asyncio
import statistics
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from harness.capacity.model import Costs, Forward, Method, steps
from harness.constraint import Constraint
from harness.deployment import Deployment
from harness.deployments.embedded.config import Embedded
from harness.errors import DeploymentError
from harness.method import AsyncProcessor, Native, Processor, Unconstrained
from harness.method import Method as Arm
from harness.request import Completion, Request, Sampling


class Point(msgspec.Struct, frozen=True):
    """One method at one batch size: tokens a second, and seconds a token of making masks and of applying them."""

    method: Method
    batch: int
    tokens_per_s: float
    mask_s: float
    apply_s: float


class Check(msgspec.Struct, frozen=True):
    """Predicted against measured; `error` is predicted over measured, less 1."""

    method: Method
    batch: int
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1


def arms(engine: str) -> dict[Method, Arm]:
    """The methods of the harness, by an engine."""
    return {
        "none": Unconstrained(),
        "native": Native(engine),
        "processor": Processor(engine),
        "async": AsyncProcessor(engine),
    }


def sweep(
    config: Embedded, constraint: Constraint, engine: str, batches: Sequence[int], tokens: int, turns: int
) -> tuple[Point, ...]:
    """Measure every method at every batch size. Raises `DeploymentError` where a request fails or ends early."""

    async def measured() -> list[Point]:
        async with config.start() as deployment:
            return [
                await _point(deployment, name, arm, constraint, batch, tokens, turns)
                for batch in batches
                for name, arm in arms(engine).items()
            ]

    return tuple(asyncio.run(measured()))


def checked(points: Sequence[Point], costs: Costs) -> tuple[Check, ...]:
    """Predictions for every method but `none`, which gives the forward curve. Mask and apply times are those of each
    method at the smallest batch; larger batches are predicted."""
    forward = forward_curve(points)
    smallest = min(point.batch for point in points)
    base: Mapping[Method, Point] = {point.method: point for point in points if point.batch == smallest}
    found = []
    for point in points:
        if point.method != "none":
            own = msgspec.structs.replace(costs, apply_s=base[point.method].apply_s)
            masks = np.full((1, point.batch), base[point.method].mask_s)
            took = steps(masks, forward.at(point.batch), own)[point.method]
            found.append(Check(point.method, point.batch, point.tokens_per_s, point.batch / took))
    return tuple(found)


def forward_curve(points: Sequence[Point]) -> Forward:
    """Seconds of a step without masks by batch size: the forward pass and all that the loop does besides."""
    return Forward({point.batch: point.batch / point.tokens_per_s for point in points if point.method == "none"})


async def _point(
    deployment: Deployment, name: Method, arm: Arm, constraint: Constraint, batch: int, tokens: int, turns: int
) -> Point:
    taken = [await _turn(deployment, arm, constraint, batch, tokens, turn) for turn in range(turns + 1)]
    rates, masks, applies = zip(*taken[1:], strict=True)  # the first turn is a warm-up
    return Point(name, batch, *(statistics.median(values) for values in (rates, masks, applies)))


async def _turn(
    deployment: Deployment, arm: Arm, constraint: Constraint, batch: int, tokens: int, turn: int
) -> tuple[float, float, float]:
    """Tokens a second, and seconds a token of making and applying masks."""
    prompts = [
        await deployment.tokenize(f"{1000 * turn + 17 * row}, {row}, {turn}, counting on: ") for row in range(batch)
    ]
    requests = [
        Request(f"{turn}.{i}", f"{i}", prompt, constraint, arm, Sampling(tokens), f"{turn}")
        for i, prompt in enumerate(prompts)
    ]
    answers = await asyncio.gather(*map(deployment.generate, requests))
    done = [answer for answer in answers if isinstance(answer, Completion) and answer.finish == "length"]
    if len(done) < batch:
        failed = next((one for one in answers if one not in done), None)
        raise DeploymentError(f"capacity: a request ended early: {failed}", "texts that go on", "another constraint")
    instants = [[one.timing.sent_s + at for at in one.timing.token_s] for one in done]
    begin, end = max(each[0] for each in instants), min(each[-1] for each in instants)
    said = sum(begin < at <= end for each in instants for at in each)
    spent = [sum(getattr(one.cost, kind) or 0.0 for one in done) / (batch * tokens) for kind in ("mask_s", "apply_s")]
    return said / (end - begin), spent[0], spent[1]
