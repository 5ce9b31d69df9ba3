"""The model: one decode step of a batch, as each method takes it.

With F the forward pass of B rows, S the sum of their masks, X what the slowest worker needs for its share of them (both
drawn from measured masks), and what masks cost beside being made (`Costs`):

    none       F
    native     F + S + B apply                              (made in the loop, one after another)
    processor  F + handoff + X + ask + B (seat + apply)     (made by workers once the logits are there)
    async      max(F, handoff + X) + ask + B (seat + apply) (made by workers while the model runs)

Methods in `Costs.hidden` make their masks beside the forward pass: the larger of the two counts, not their sum. A step
takes as long as its slowest part, so the mean of the maximum is taken over drawn steps, not the maximum of means: one
dear mask in a batch makes the whole batch wait.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.errors import ConfigError
from harness.metrics.estimate import Estimate

Floats = NDArray[np.float64]
Method = Literal["none", "native", "processor", "async"]
METHODS: tuple[Method, ...] = get_args(Method)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
DRAWS = 20_000
"""Masks drawn for one batch size, in at least `STEPS` steps: enough to meet a mask that is one in a thousand."""
STEPS = 200
RESAMPLES = 60


class Costs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What masks cost beside being made, in seconds. On a row: `apply_s` to put a mask there and to know what it did,
    `seat_s` to ask a worker for one and to take it. On a step: `ask_s` of the loop's own time to ask workers and to
    hear them, `handoff_s` until they have heard and are heard, which passes while the model runs where masks are
    hidden. `workers` make masks. `hidden`: the methods whose masks are made while the model runs."""

    apply_s: float = 75e-6
    seat_s: float = 5e-6
    ask_s: float = 130e-6
    handoff_s: float = 105e-6
    workers: int = 1
    hidden: tuple[Method, ...] = ("async",)

    def __post_init__(self) -> None:
        if min(self.apply_s, self.seat_s, self.ask_s, self.handoff_s) < 0 or self.workers < 1:
            raise ConfigError(f"costs: {self}", "seconds of at least 0, workers of at least 1", "mend the value")
        if "none" in self.hidden:
            raise ConfigError("costs.hidden: none", "methods that have masks", "leave it out")


class Forward(msgspec.Struct, frozen=True):
    """Seconds of a forward pass by batch size: straight lines between the points, the first point below them, the last
    line's slope beyond them."""

    seconds: dict[int, float]

    def at(self, batch: int) -> float:
        """Seconds of a pass of `batch` rows."""
        sizes = sorted(self.seconds)
        if batch <= sizes[-1] or len(sizes) == 1:
            return float(np.interp(batch, sizes, [self.seconds[size] for size in sizes]))
        last, before = sizes[-1], sizes[-2]
        slope = max((self.seconds[last] - self.seconds[before]) / (last - before), 0.0)
        return self.seconds[last] + slope * (batch - last)


class Prediction(msgspec.Struct, frozen=True):
    """Tokens a second of each method at one batch size. The intervals are what the mask times leave open (schemas, or
    requests, resampled); the forward curve is taken as it is given. `extrapolated`: beyond the curve's last point."""

    batch: int
    forward_s: float
    masks_s: Estimate
    tokens_per_s: dict[Method, Estimate]
    extrapolated: bool


class Capacity(msgspec.Struct, frozen=True):
    """`bottleneck`: the smallest batch of those asked at which a worker needs longer for its masks than the forward
    pass takes. `loses`: method -> the smallest at which it has less than 90% of `none`. None: at none of them."""

    engine: str
    predictions: tuple[Prediction, ...]
    bottleneck: int | None
    loses: dict[Method, int | None]


def forward_of(points: Mapping[int, float]) -> Forward:
    """A curve from batch size -> milliseconds. Raises `ConfigError`."""
    if not points or any(batch < 1 or not 0 < ms < float("inf") for batch, ms in points.items()):
        raise ConfigError(f"forward: {dict(points)}", "batch: milliseconds, both above 0", "e.g. {1: 8.5, 32: 11.0}")
    return Forward({batch: ms / 1e3 for batch, ms in points.items()})


def capacity(
    engine: str,
    masks: Sequence[Floats],
    forward: Forward,
    costs: Costs,
    batches: Sequence[int] = BATCHES,
    seed: int = 0,
) -> Capacity:
    """The prediction from seconds of single masks, an array for each schema (or request)."""
    random = np.random.default_rng(seed)
    groups = [one for one in masks if one.size]
    if not groups:
        raise ConfigError(f"masks: no mask times of {engine}", "an engine that walked something", "name another engine")
    found = tuple(_predict(batch, groups, forward, costs, random) for batch in sorted(batches))
    return Capacity(
        engine,
        found,
        next((p.batch for p in found if (p.masks_s.value or 0.0) > p.forward_s), None),
        {method: _loses(found, method) for method in METHODS[1:]},
    )


def steps(drawn: Floats, forward_s: float, costs: Costs) -> dict[Method, float]:
    """Mean seconds of a step by method, for drawn masks of shape (steps, batch)."""
    batch = drawn.shape[1]
    share = costs.handoff_s + worker_share(drawn, costs.workers)
    applied = batch * costs.apply_s
    seated = costs.ask_s + batch * costs.seat_s + applied
    return {
        "none": forward_s,
        "native": _mean(forward_s, drawn.sum(axis=1), "native" in costs.hidden) + applied,
        "processor": _mean(forward_s, share, "processor" in costs.hidden) + seated,
        "async": _mean(forward_s, share, "async" in costs.hidden) + seated,
    }


def _mean(forward_s: float, masks_s: Floats, hidden: bool) -> float:
    return float((np.maximum(forward_s, masks_s) if hidden else forward_s + masks_s).mean())


def worker_share(drawn: Floats, workers: int) -> Floats:
    """What the slowest worker needs for its rows, which are dealt in turn: shape (steps,)."""
    used = min(workers, drawn.shape[1])
    return np.asarray(np.stack([drawn[:, one::used].sum(axis=1) for one in range(used)]).max(axis=0))


def _predict(
    batch: int, groups: Sequence[Floats], forward: Forward, costs: Costs, random: np.random.Generator
) -> Prediction:
    forward_s, everything = forward.at(batch), np.concatenate(groups)
    rates, masks = _rates(everything, batch, forward_s, costs, random)
    again = [_rates(_resampled(groups, random), batch, forward_s, costs, random) for _ in range(RESAMPLES)]
    return Prediction(
        batch,
        forward_s,
        _estimate(masks, [m for _, m in again], everything.size),
        {name: _estimate(rates[name], [r[name] for r, _ in again], everything.size) for name in METHODS},
        batch > max(forward.seconds),
    )


def _rates(
    masks: Floats, batch: int, forward_s: float, costs: Costs, random: np.random.Generator
) -> tuple[dict[Method, float], float]:
    """Tokens a second of each method, and the mean seconds of a worker's masks of a step."""
    drawn = random.choice(masks, (max(STEPS, DRAWS // batch), batch))
    took = steps(drawn, forward_s, costs)
    return {name: batch / took[name] for name in METHODS}, float(worker_share(drawn, costs.workers).mean())


def _resampled(groups: Sequence[Floats], random: np.random.Generator) -> Floats:
    return np.concatenate([groups[i] for i in random.integers(0, len(groups), len(groups))])


def _estimate(value: float, again: Sequence[float], n: int) -> Estimate:
    low, high = np.quantile(again, [0.025, 0.975])
    return Estimate(value, min(float(low), value), max(float(high), value), n)


def _loses(found: Sequence[Prediction], method: Method) -> int | None:
    below = (p.batch for p in found if (p.tokens_per_s[method].value or 0) < 0.9 * (p.tokens_per_s["none"].value or 0))
    return next(below, None)
