"""Temperature and Platt scaling, fitted on one half of the examples and reported on the other."""

import msgspec

from harness.metrics.estimate import Estimate
from harness.metrics.reliability import Bin


class Recalibration(msgspec.Struct, frozen=True):
    """What scaling would do to one confidence of one arm. All numbers but `n_fit` are of the half that was not fitted.

    `temperature` divides the log-odds; `slope` and `offset` are Platt's. `before`, `after_temperature` and
    `after_platt` hold `ece`, `brier` and `nll`; the bins are the diagram after temperature scaling.
    """

    n_fit: int
    n: int
    temperature: float
    slope: float
    offset: float
    before: dict[str, Estimate]
    after_temperature: dict[str, Estimate]
    after_platt: dict[str, Estimate]
    bins: tuple[Bin, ...]
