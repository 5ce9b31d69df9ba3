"""The first use of each constraint apart from the rest, for requests sent one after another."""

from collections.abc import Hashable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.metrics.judged import Floats


class ColdWarm(msgspec.Struct, frozen=True):
    """Tokens per second of all requests and of the warm ones, and the mean seconds of the cold; None where none is."""

    cold: int
    warm: int
    all_tokens_per_s: float | None
    warm_tokens_per_s: float | None
    cold_s: float | None


def cold_and_warm(latencies_s: Sequence[float], tokens: Sequence[int], constraints: Sequence[Hashable]) -> ColdWarm:
    """Part requests by whether they were the first with their constraint.

    All three sequences are in the order of sending; concurrency is 1, so latencies add up to the time taken.
    """
    first = _firsts(constraints)
    seconds, made = np.asarray(latencies_s, dtype=np.float64), np.asarray(tokens, dtype=np.float64)
    return ColdWarm(
        cold=int(first.sum()),
        warm=int((~first).sum()),
        all_tokens_per_s=_rate(made, seconds),
        warm_tokens_per_s=_rate(made[~first], seconds[~first]),
        cold_s=float(seconds[first].mean()) if first.any() else None,
    )


def _firsts(constraints: Sequence[Hashable]) -> NDArray[np.bool_]:
    places: dict[Hashable, int] = {}
    return np.array([places.setdefault(name, place) == place for place, name in enumerate(constraints)], dtype=np.bool_)


def _rate(tokens: Floats, seconds: Floats) -> float | None:
    return float(tokens.sum() / seconds.sum()) if seconds.sum() > 0 else None
