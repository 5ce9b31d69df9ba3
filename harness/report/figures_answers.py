"""The figures that compare arms: accuracy against throughput, and paired differences."""

from collections.abc import Sequence

from markupsafe import Markup

from harness.metrics.names import NAMES
from harness.metrics.pairs import Pair
from harness.metrics.summary import Summary
from harness.report import chart_differences, chart_tradeoff, numbers
from harness.report.comparisons import is_established
from harness.report.figure import Figure, mark
from harness.report.palette import Look
from harness.report.reading import NOTHING, confidence_of

MOST_NAMED = 6
"""Arms whose names are repeated at a figure that has their letters; the table of arms names all."""
MOST_ROWS = 15
"""Paired differences in one figure; the table of pairs holds all."""


def tradeoff(summary: Summary, looks: Sequence[Look]) -> tuple[Figure, ...]:
    """Accuracy against throughput; none where no arm has both."""
    confidence = confidence_of(summary)
    spots = [_spot(summary, look, confidence) for look in looks]
    drawn = [spot for spot in spots if spot.accuracy.value is not None and spot.speed.value is not None]
    if not drawn:
        return ()
    caption = (
        "Upwards is more accurate, to the right is faster, a smaller ring is better calibrated. Bars are 95% "
        "intervals; where they overlap, see the paired comparisons before calling one arm better."
    )
    legend = tuple((mark(spot.look), f"{spot.look.letter} {spot.look.arm}, {_ece(spot)}") for spot in spots)
    title = f"Accuracy, throughput, calibration ({confidence} confidence)"
    return (Figure(title, caption, chart_tradeoff.chart(drawn), legend),)


def _spot(summary: Summary, look: Look, confidence: str) -> chart_tradeoff.Spot:
    metrics = summary.arms[look.arm]
    return chart_tradeoff.Spot(
        look,
        metrics.get("accuracy", NOTHING),
        metrics.get("tokens_per_s", NOTHING),
        metrics.get(f"{confidence}_ece", NOTHING),
    )


def _ece(spot: chart_tradeoff.Spot) -> str:
    return "no ECE" if spot.ece_value is None else f"ECE {numbers.fixed(spot.ece_value)}"


def differences(summary: Summary, looks: Sequence[Look]) -> tuple[Figure, ...]:
    """Paired differences in accuracy and ratios in throughput."""
    letters = {look.arm: look.letter for look in looks}
    made = (_difference_figure(metric, summary, letters) for metric in ("accuracy", "tokens_per_s"))
    return tuple(figure for figure in made if figure is not None)


def _difference_figure(metric: str, summary: Summary, letters: dict[str, str]) -> Figure | None:
    pairs = [p for p in summary.pairs if p.metric == metric and None not in (p.value, p.low, p.high)]
    if not pairs:
        return None
    shown = pairs[:MOST_ROWS]
    more = f" The first {MOST_ROWS} of {len(pairs)} comparisons." if len(pairs) > MOST_ROWS else ""
    ratio = pairs[0].kind == "ratio"
    rows = [_difference(pair, letters) for pair in shown]
    title = f"{'Ratios' if ratio else 'Differences'} in {NAMES[metric].title}, paired"
    caption = (
        f"A full mark is an established difference, a hollow one is not. Bars are 95% intervals, each by itself.{more}"
    )
    unit = "times as much" if ratio else "percentage points"
    picture = chart_differences.chart(title, rows, 1.0 if ratio else 0.0, unit, ratio)
    few = len(letters) <= MOST_NAMED
    legend = tuple((Markup(""), f"{letter} {arm}") for arm, letter in letters.items()) if few else ()
    return Figure(title, caption, picture, legend)


def _difference(pair: Pair, letters: dict[str, str]) -> chart_differences.Difference:
    factor = 1.0 if pair.kind == "ratio" else 100.0
    sign = "over" if pair.kind == "ratio" else "minus"
    return chart_differences.Difference(
        name=f"{letters[pair.arm]} {sign} {letters[pair.against]}",
        value=factor * (pair.value or 0.0),
        low=factor * (pair.low or 0.0),
        high=factor * (pair.high or 0.0),
        note=f"Holm-adjusted {numbers.p_value(pair.p_holm)}, n = {pair.n:,}",
        established=is_established(pair),
    )
