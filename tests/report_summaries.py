"""Summaries made by hand for the tests of tables, sentences and pictures."""

from harness.metrics.estimate import Estimate, nothing
from harness.metrics.names import NAMES
from harness.metrics.pairs import Pair
from harness.metrics.quality import Counts
from harness.metrics.reliability import Bin, Reliability
from harness.metrics.summary import Summary

COUNTS = Counts(
    n=200, valid=200, invalid=0, truncated=0, stopped_early=0, failed=0, unsupported=0, unlabelled=0, retried=0,
    trivial=0, flags={},
)  # fmt: skip
EMPTY_BIN = Bin(0.0, 0.5, 0, None, None, None, None)
FULL_BIN = Bin(0.5, 1.0, 200, 0.8, 0.6, 0.5, 0.7)


def summary(
    metrics: dict[str, dict[str, Estimate]], pairs: tuple[Pair, ...] = (), counts: dict[str, Counts] | None = None
) -> Summary:
    """A summary in which every metric that is not given is missing."""
    arms = {arm: {name: given.get(name, nothing()) for name in NAMES} for arm, given in metrics.items()}
    return Summary(
        task="intents", deployment="embedded", seed=7, arms=arms, pairs=pairs,
        counts=counts or dict.fromkeys(arms, COUNTS), reliability={}, recalibration={}, latency={}, split={}, blocks={},
        wanted={}, notes=(),
    )  # fmt: skip


def difference(arm: str, against: str, value: float, p_holm: float | None, metric: str = "accuracy") -> Pair:
    """A difference with an interval of five points to each side."""
    return Pair(
        metric, arm, against, "difference", "mcnemar", value, value - 0.05, value + 0.05, 200, p_holm, p_holm, 0.07
    )


def ratio(arm: str, against: str, value: float, p_holm: float | None, metric: str = "tokens_per_s") -> Pair:
    """A ratio of speeds with an interval of a tenth to each side."""
    return Pair(metric, arm, against, "ratio", "blocks", value, value / 1.1, value * 1.1, 12, p_holm, p_holm, 1.2)


def diagram() -> Reliability:
    """One bin without answers and one with all of them."""
    return Reliability(200, 0, (EMPTY_BIN, FULL_BIN), (FULL_BIN,))
