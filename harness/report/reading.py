"""How a metric is written: percent, decimals, a time in one unit for the whole row, or a rate."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from harness.metrics.estimate import Estimate
from harness.metrics.names import NAMES
from harness.metrics.summary import Confidence, Summary
from harness.report import numbers

Style = Literal["percent", "decimals", "probability", "time", "rate"]
CONFIDENCES: tuple[Confidence, ...] = ("label", "path", "raw")
ARROWS = {"higher": "↑", "lower": "↓", "neither": ""}


class Reading(msgspec.Struct, frozen=True):
    """How one metric reads in one place: its title with its unit, and how its values are written without it."""

    metric: str
    title: str
    meaning: str
    arrow: str
    style: Style
    unit_s: float = 1.0

    def number(self, value: float | None) -> str:
        """A value, a dash where there is none."""
        if value is None:
            return numbers.MISSING
        match self.style:
            case "percent":
                return numbers.percent(value)
            case "decimals":
                return numbers.fixed(value)
            case "probability" if value >= 0:
                return numbers.probability(value)
            case "probability":
                return numbers.fixed(value)
            case "time":
                return numbers.significant(value / self.unit_s)
            case "rate":
                return numbers.significant(value)

    def interval(self, estimate: Estimate) -> str:
        """`79.1 to 87.0`, empty where there is none."""
        if estimate.low is None or estimate.high is None:
            return ""
        return f"{self.number(estimate.low).rstrip('%')} to {self.number(estimate.high).rstrip('%')}"


def reading(metric: str, estimates: Iterable[Estimate]) -> Reading:
    """How `metric` reads where these estimates stand together."""
    name, style = NAMES[metric], style_of(metric)
    title, unit_s = name.title, 1.0
    if style == "time":
        unit_s, unit = numbers.time_unit([one.value for one in estimates if one.value is not None])
        title = f"{title}, {unit}"
    return Reading(metric, title, name.meaning, ARROWS[name.better], style, unit_s)


def style_of(metric: str) -> Style:
    """The style of a metric, by its unit; calibration is read in decimals, as papers write it."""
    match NAMES[metric].unit:
        case "seconds":
            return "time"
        case "per second":
            return "rate"
        case "share" if not metric.startswith(CONFIDENCES):
            return "percent"
        case "probability":
            return "probability"
        case "share" | "nats" | "none":
            return "decimals"


def confidence_of(summary: Summary) -> Confidence:
    """The confidence whose calibration the report puts first: `label` where a task has it, else `path`, else `raw`."""
    for confidence in CONFIDENCES:
        if any(one.get(f"{confidence}_ece", NOTHING).value is not None for one in summary.arms.values()):
            return confidence
    return CONFIDENCES[0]


NOTHING = Estimate(None, None, None, 0)
