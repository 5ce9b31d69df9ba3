"""Numbers as people read them: three significant digits, one unit a row, and a dash for what is not there.

A missing number is a dash, never a zero. Probabilities of 1 and 0 are written as such only where they are exact.
"""

import math
from collections.abc import Callable, Sequence
from typing import Protocol

MISSING = "–"
NO_INTERVAL = "no interval"
"""Beside a value that rests on too little for one."""
TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


class Ended(Protocol):
    """Whatever has a value and, where one could be had, an interval."""

    @property
    def value(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


def between(write: Callable[[float], str], one: Ended) -> str:
    """The interval of `one`, `0.012 to 0.034`; empty where there is none."""
    return "" if one.low is None or one.high is None else f"{write(one.low)} to {write(one.high)}"


def percent(value: float | None) -> str:
    """A share as a percentage with one decimal: `83.2%`; never rounded to a 0% or 100% that it is not."""
    if value is None:
        return MISSING
    rounded = f"{100 * value:.1f}%".replace("-", "−")
    if rounded == "100.0%" and value < 1:
        return ">99.9%"
    if rounded == "0.0%" and value > 0:
        return "<0.1%"
    return rounded


def percent_tick(value: float) -> str:
    """A share as a tick of an axis: `75%`."""
    return f"{100 * value:g}%"


def points(value: float) -> str:
    """A difference of shares in percentage points, its sign written: `+4.2`, `−0.3`."""
    return signed(100 * value, 1)


def signed(value: float, decimals: int) -> str:
    """A number with its sign written; a value that rounds to nothing has none."""
    rounded = f"{abs(value):.{decimals}f}"
    if float(rounded) == 0:
        return rounded
    return ("+" if value > 0 else "−") + rounded


def fixed(value: float | None, decimals: int = 3) -> str:
    """A number with so many decimals."""
    return MISSING if value is None else f"{value:.{decimals}f}".replace("-", "−")


def probability(value: float | None) -> str:
    """A probability with three decimals, never rounded to a 0 or 1 that it is not: `0.731`, `<0.001`, `>0.999`."""
    if value is None:
        return MISSING
    if value in (0.0, 1.0):
        return f"{value:g}"
    rounded = f"{value:.3f}"
    return {"0.000": "<0.001", "1.000": ">0.999"}.get(rounded, rounded)


def significant(value: float | None, digits: int = 3) -> str:
    """A number with so many significant digits and commas at thousands: `0.0123`, `4.57`, `185`, `12,300`."""
    if value is None:
        return MISSING
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, decimals):,.{max(decimals, 0)}f}".replace("-", "−")


def seconds(value: float | None) -> str:
    """A duration in the unit that suits it: `12.3 ms`."""
    if value is None:
        return MISSING
    factor, unit = time_unit([value])
    return f"{significant(value / factor)} {unit}"


def time_unit(values: Sequence[float]) -> tuple[float, str]:
    """The one unit for durations that are shown together, by the largest: its length in seconds and its name."""
    largest = max((abs(value) for value in values), default=1e-3)
    return next((unit for unit in TIME_UNITS if largest >= unit[0]), TIME_UNITS[-1])


def count(value: int | None) -> str:
    """A count with commas at thousands."""
    return MISSING if value is None else f"{value:,}"


def compact(value: int) -> str:
    """A count in at most four characters: `950`, `12k`, `3M`."""
    if value < 1000:
        return str(value)
    return f"{value / 1e3:.3g}k" if value < 999_500 else f"{value / 1e6:.3g}M"


def p_value(value: float | None) -> str:
    """`p = 0.012`, `p < 0.001`; a p below 0.05 never reads as 0.05."""
    if value is None:
        return "p –"
    if value < 0.001:
        return "p < 0.001"
    if value >= 0.1:
        return f"p = {min(value, 1.0):.2f}"
    near = f"{value:.3f}"
    return f"p = {near}" if near != "0.050" else f"p = {math.floor(value * 1e4) / 1e4:.4f}"


def plural(number: int, noun: str, many: str = "") -> str:
    """`1 example`, `2 examples`."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"
