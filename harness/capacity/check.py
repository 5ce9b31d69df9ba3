"""What masks cost beside being made, as the deployment's own clocks say, and predictions held against measurement.

No throughput enters a prediction but that of `none`, the forward curve: masks, waiting and applying are timed where
they happen. So each throughput with masks is a test of the model.
"""

import statistics

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from harness.capacity.model import Costs, Method, steps, worker_share
from harness.capacity.sweep import Point, Sweep

Equation = tuple[tuple[float, float, float], float]
"""How often `ask_s`, `seat_s` and `handoff_s` stand in a wait, and the wait less the masks that it was for."""


class Check(msgspec.Struct, frozen=True):
    """Tokens a second of one method at one batch size, predicted and measured (the median of turns, and the lowest and
    highest)."""

    method: Method
    batch: int
    measured: float
    low: float
    high: float
    predicted: float

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted / self.measured - 1


def hiding(sweep: Sweep) -> tuple[Method, ...]:
    """The methods whose masks were made while the model ran: `async`, which is that, and others that waited for less
    than half of what their masks took (as in a loop that hands its forward pass to a GPU)."""
    beside: list[Method] = []
    for method in sweep.methods:
        points = [sweep.at(method, batch) for batch in sweep.batches]
        made_s = sum(point.batch * statistics.median(point.mask_s) for point in points if point.mask_s)
        wait_s = sum(statistics.median(point.wait_s) for point in points if point.wait_s)
        if method == "async" or wait_s < made_s / 2:
            beside.append(method)
    return tuple(beside)


def waiting(sweep: Sweep, costs: Costs) -> Costs:
    """`costs` with the `ask_s`, `seat_s` and `handoff_s` that make the waits of a step, at all batch sizes, as they
    were: least squares, none below zero."""
    found = [
        _wait(sweep.at(method, batch), costs, sweep.forward().at(batch))
        for method in ("processor", "async")
        for batch in sweep.batches
    ]
    (ask_s, seat_s, handoff_s), _ = nnls(np.array([row for row, _ in found]), np.array([over for _, over in found]))
    return msgspec.structs.replace(costs, ask_s=float(ask_s), seat_s=float(seat_s), handoff_s=float(handoff_s))


def checked(sweep: Sweep, costs: Costs) -> tuple[Check, ...]:
    """Every method with masks at every batch size."""
    return tuple(_check(sweep, point, costs) for point in sweep.points if point.method != "none")


def _check(sweep: Sweep, point: Point, costs: Costs) -> Check:
    rates = [point.batch / step_s for step_s in point.step_s]
    took = steps(_masks(point), sweep.forward().at(point.batch), costs)[point.method]
    return Check(point.method, point.batch, statistics.median(rates), min(rates), max(rates), point.batch / took)


def _wait(point: Point, costs: Costs, forward_s: float) -> Equation:
    """While a hidden method's masks are made no longer than the model runs, only asking and answering hold it up."""
    made_s = float(worker_share(_masks(point), costs.workers)[0])
    wait_s, batch = statistics.median(point.wait_s), float(point.batch)
    if point.method not in costs.hidden:
        return (1.0, batch, 1.0), wait_s - made_s
    if made_s < forward_s:
        return (1.0, batch, 0.0), wait_s
    return (1.0, batch, 1.0), wait_s - (made_s - forward_s)


def _masks(point: Point) -> NDArray[np.float64]:
    """One step of masks that all take what they took in the mean."""
    return np.full((1, point.batch), statistics.median(point.mask_s))
