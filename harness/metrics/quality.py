"""How good the answers are: accuracy, score, validity, coverage, compliance, and what became of each request.

The rules: a failed request says nothing about a method and is in none of the shares but `failed` (not even whether its
constraint could be expressed is known). Where the engine cannot express a constraint nothing was asked, so it counts
against coverage and validity but not accuracy. A truncated answer is not right. An example without a gold answer is in
no accuracy.
"""

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.metrics.columns import OUTCOMES, Arm
from harness.metrics.estimate import Estimate
from harness.metrics.intervals import bounded_mean
from harness.metrics.judged import Floats
from harness.record import Outcome


class Counts(msgspec.Struct, frozen=True):
    """What became of an arm's requests; the six outcomes sum to `n`.

    `unlabelled`: answered examples without a gold answer (left out of accuracy). `retried`: needed more than one
    attempt. `flags`: how many records carry each flag.
    """

    n: int
    valid: int
    invalid: int
    truncated: int
    stopped_early: int
    failed: int
    unsupported: int
    unlabelled: int
    retried: int
    trivial: int
    flags: dict[str, int]


def counts(arm: Arm) -> Counts:
    """The counts of an arm."""
    became = np.bincount(arm.outcome, minlength=len(OUTCOMES))
    return Counts(
        n=arm.n,
        **{outcome: int(became[place]) for place, outcome in enumerate(OUTCOMES)},
        unlabelled=int((arm.answered & np.isnan(arm.number["right"])).sum()),
        retried=int((arm.count["attempts"] > 1).sum()),
        trivial=int((arm.count["trivial"] > 0).sum()),
        flags=arm.flags,
    )


def quality(arm: Arm) -> dict[str, Estimate]:
    """The shares of an arm, by the names in `harness.metrics.names`."""
    everyone = np.ones(arm.n, dtype=np.bool_)
    came = ~arm.ended("failed")
    return {
        "accuracy": _over(arm, right(arm), labelled(arm)),
        "score": _over(arm, score(arm), labelled(arm)),
        "validity": _over(arm, _is(arm, "valid"), came),
        "coverage": _over(arm, 1 - _is(arm, "unsupported"), came),
        "compliance": _over(arm, _is(arm, "valid"), arm.answered),
        "invalid": _over(arm, _is(arm, "invalid"), came),
        "truncated": _over(arm, _is(arm, "truncated"), came),
        "stopped_early": _over(arm, _is(arm, "stopped_early"), came),
        "failed": _over(arm, _is(arm, "failed"), everyone),
        "unsupported": _over(arm, _is(arm, "unsupported"), everyone),
    }


def labelled(arm: Arm) -> NDArray[np.bool_]:
    """Which answers can be right or wrong: they came back, and there is a gold answer."""
    return arm.answered & ~np.isnan(arm.number["right"])


def right(arm: Arm) -> Floats:
    """1 for a right answer, else 0; an answer cut by the budget is never right. Meaningful where `labelled`."""
    return np.where(arm.ended("truncated"), 0.0, np.nan_to_num(arm.number["right"]))


def score(arm: Arm) -> Floats:
    """The partial credit of each answer, that of `right` where the record has none. Meaningful where `labelled`."""
    given = np.where(np.isnan(arm.number["score"]), arm.number["right"], arm.number["score"])
    return np.where(arm.ended("truncated"), 0.0, np.nan_to_num(given))


def valid(arm: Arm) -> Floats:
    """1 for a valid answer, else 0."""
    return _is(arm, "valid")


def _is(arm: Arm, outcome: Outcome) -> Floats:
    return arm.ended(outcome).astype(np.float64)


def _over(arm: Arm, values: Floats, rows: NDArray[np.bool_]) -> Estimate:
    return bounded_mean(values[rows], arm.clusters(rows))
