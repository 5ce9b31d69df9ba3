"""A capacity estimate in words: a table for each engine, at which batch masks become the bottleneck, and how near
predictions came to measurement."""

import statistics
from collections.abc import Sequence

from harness.capacity.check import Check
from harness.capacity.model import METHODS, Capacity, Costs, Prediction
from harness.capacity.sweep import Sweep
from harness.mask_bench import grids
from harness.mask_bench.grids import Grid
from harness.metrics.estimate import Estimate
from harness.report.markdown import text as marked
from harness.report.numbers import seconds, significant

TITLE = "Capacity"


def terminal(capacities: Sequence[Capacity], checks: Sequence[Check], costs: Costs, measured: Sweep | None) -> str:
    """All of it in columns."""
    parts = [lead(costs, measured)]
    for found in capacities:
        parts += ["", *grids.columns(table(found)), *words(found)]
    if checks:
        parts += ["", *grids.columns(comparison(checks)), verdict(checks)]
    return "\n".join(parts)


def markdown(capacities: Sequence[Capacity], checks: Sequence[Check], costs: Costs, measured: Sweep | None) -> str:
    """The same as Markdown."""
    parts = [f"## {TITLE}\n\n{marked(lead(costs, measured))}\n"]
    for found in capacities:
        parts += [grids.markdown(table(found)), "\n".join(f"* {marked(line)}" for line in words(found)) + "\n"]
    if checks:
        parts += [grids.markdown(comparison(checks)), f"{marked(verdict(checks))}\n"]
    return "\n".join(parts)


def lead(costs: Costs, measured: Sweep | None) -> str:
    """What the prediction rests on."""
    hidden = ", ".join(costs.hidden) or "no method"
    workers = "one worker makes" if costs.workers == 1 else f"{costs.workers} workers make"
    return (
        f"Beside being made, masks cost {seconds(costs.apply_s)} a row to apply, and where {workers} "
        f"them {seconds(costs.seat_s)} a row, {seconds(costs.ask_s)} a step, and {seconds(costs.handoff_s)} a "
        f"step that is hidden where masks are. Made while the model runs: {hidden}.{_measured(measured)}"
    )


def _measured(sweep: Sweep | None) -> str:
    if sweep is None:
        return ""
    what = "The forward curve was" if len(sweep.methods) == 1 else "The forward curve, masks and costs were"
    return f" {what} measured: {sweep.info.name}, {sweep.info.model}, {sweep.info.device}, {sweep.info.dtype}."


def table(found: Capacity) -> Grid:
    """Batch sizes down, methods across: tokens a second with the interval that the mask times leave."""
    rows = tuple(_row(one) for one in found.predictions)
    return Grid(f"Tokens a second, predicted: {found.engine}", ("batch", "forward", "masks", *METHODS, ""), rows)


def words(found: Capacity) -> Sequence[str]:
    """At which batch sizes masks tell."""
    largest = found.predictions[-1].batch
    where = f"from batch {found.bottleneck} on" if found.bottleneck else f"at no batch up to {largest}"
    yields = [
        f"{name} has less than 90% of none {f'from batch {batch} on' if batch else f'at no batch up to {largest}'}."
        for name, batch in found.loses.items()
    ]
    return [f"Masks take longer than the forward pass {where}.", *yields]


def comparison(checks: Sequence[Check]) -> Grid:
    """Predicted and measured, a row for each method and batch size."""
    head = ("method", "batch", "measured (turns)", "predicted", "error")
    return Grid("Tokens a second, predicted and measured", head, tuple(_compared(one) for one in checks))


def verdict(checks: Sequence[Check]) -> str:
    """The largest error, and how many are more than chance between turns."""
    worst = max(checks, key=lambda one: abs(one.error))
    apart = [one for one in checks if not one.low <= one.predicted <= one.high]
    return (
        f"Largest error: {_error(worst)} ({worst.method}, batch {worst.batch}); median "
        f"{100 * statistics.median(abs(one.error) for one in checks):.1f}%; {len(apart)} of {len(checks)} predictions "
        "lie outside what the turns measured."
    )


def _row(one: Prediction) -> tuple[str, ...]:
    rates = (_rate(one.tokens_per_s[name]) for name in METHODS)
    note = "forward extrapolated" if one.extrapolated else ""
    return (str(one.batch), seconds(one.forward_s), seconds(one.masks_s.value), *rates, note)


def _rate(one: Estimate) -> str:
    if one.low == one.high:
        return significant(one.value)
    return f"{significant(one.value)} ({significant(one.low)} to {significant(one.high)})"


def _compared(one: Check) -> tuple[str, ...]:
    measured = f"{significant(one.measured)} ({significant(one.low)} to {significant(one.high)})"
    return (one.method, str(one.batch), measured, significant(one.predicted), _error(one))


def _error(one: Check) -> str:
    return f"{100 * one.error:+.1f}%".replace("-", "−")
