"""A capacity estimate in words: a table for each engine, and at which batch masks become the bottleneck."""

from collections.abc import Sequence

from harness.capacity.model import METHODS, Capacity, Prediction
from harness.metrics.estimate import Estimate
from harness.report.numbers import seconds, significant

WIDTH = 26


def table(found: Capacity) -> str:
    """Batch sizes down, methods across: tokens a second with the interval that the mask times leave."""
    head = "".join(cell.ljust(WIDTH) for cell in ("tokens/s", *METHODS))
    lines = [f"{found.engine}", "batch  forward     masks       " + head[WIDTH:], *map(_line, found.predictions), ""]
    return "\n".join([*(line.rstrip() for line in lines), *_words(found)])


def _line(one: Prediction) -> str:
    start = f"{one.batch:<7}{seconds(one.forward_s):<12}{seconds(one.masks_s.value):<12}"
    mark = "  (forward time extrapolated)" if one.extrapolated else ""
    return start + "".join(_rate(one.tokens_per_s[name]).ljust(WIDTH) for name in METHODS) + mark


def _rate(one: Estimate) -> str:
    if one.low == one.high:
        return significant(one.value)
    return f"{significant(one.value)} ({significant(one.low)} to {significant(one.high)})"


def _words(found: Capacity) -> Sequence[str]:
    largest = found.predictions[-1].batch
    where = f"from batch {found.bottleneck} on" if found.bottleneck else f"at no batch up to {largest}"
    yields = [
        f"{name} has less than 90% of none {f'from batch {batch} on' if batch else f'at no batch up to {largest}'}."
        for name, batch in found.loses.items()
    ]
    return [f"Masks take longer than the forward pass {where}.", *yields]
