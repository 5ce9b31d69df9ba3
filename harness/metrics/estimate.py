"""The one shape of a reported number: a value, its interval, and how many observations it rests on."""

import math

import msgspec

LEVEL = 0.95
"""Nominal coverage of every interval the harness reports."""


class Estimate(msgspec.Struct, frozen=True):
    """A number with its 95% interval. `n` counts the observations it rests on (examples, requests, tokens or blocks).

    `value` is None where nothing was observed; `low` and `high` are None where no interval can be given (one block).
    Never NaN or infinite: a metric that computes one has a fault, and building it raises ValueError.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int

    def __post_init__(self) -> None:
        for number in (self.value, self.low, self.high):
            if number is not None and not math.isfinite(number):
                raise ValueError(f"an estimate must be finite or None, got {self.value}, [{self.low}, {self.high}]")


def nothing(n: int = 0) -> Estimate:
    """No value: nothing was observed, or the metric is not defined on what was."""
    return Estimate(None, None, None, n)
