"""From values to places on an axis, with ticks at round numbers."""

import math
from collections.abc import Sequence

import msgspec

FINEST = 1e-9
"""Differences below this are not drawn."""


class Scale(msgspec.Struct, frozen=True):
    """Maps `[low, high]` onto `[start, end]` (units of the picture), straight or by logarithm."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    ticks: tuple[float, ...] = ()

    def at(self, value: float) -> float:
        """Where `value` is drawn; a value past an end is drawn at that end."""
        low, high, x = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, x = math.log(low), math.log(high), math.log(x)
        return self.start + (x - low) / (high - low) * (self.end - self.start)


def from_zero(high: float, start: float, end: float) -> Scale:
    """A straight axis from zero to a round number at or above `high`."""
    return spanning(0.0, high if high > FINEST else 1.0, start, end)


def spanning(low: float, high: float, start: float, end: float, wanted: int = 5) -> Scale:
    """A straight axis over `[low, high]`, widened to round numbers, with about `wanted` ticks. What lies closer than
    `FINEST` (by itself, or as a share of the values) is one value, with room around it."""
    largest = max(abs(low), abs(high))
    if high - low <= FINEST * max(largest, 1.0):
        pad = largest * 0.1 if largest > FINEST else 1.0
        low, high = low - pad, high + pad
    step = _round_step((high - low) / wanted)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(round(i * step, 12) for i in range(first, last + 1))
    return Scale(ticks[0], ticks[-1], start, end, ticks=ticks)


def share(start: float, end: float) -> Scale:
    """A straight axis for probabilities, 0 to 1."""
    return Scale(0.0, 1.0, start, end, ticks=(0.0, 0.25, 0.5, 0.75, 1.0))


def logarithmic(values: Sequence[float], start: float, end: float) -> Scale:
    """A logarithmic axis over the positive `values`: ticks at round numbers, at 1, 2, 5 of each power of ten where it
    spans much, or at powers of ten alone."""
    positive = [value for value in values if value > 0] or [1.0]
    low, high = min(positive), max(positive)
    if high / low < 1.2:
        low, high = low / 1.25, high * 1.25
    if high / low < 5:
        even = tuple(tick for tick in spanning(low, high, start, end).ticks if low <= tick <= high)
        return Scale(low, high, start, end, True, even)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    fine = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
    inside = [tick for tick in fine if low <= tick <= high]
    coarse = [tick for tick in inside if math.isclose(math.log10(tick) % 1, 0, abs_tol=1e-9)]
    return Scale(low, high, start, end, True, tuple(inside if len(inside) <= 6 else coarse))


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * (1 - 1e-9))
