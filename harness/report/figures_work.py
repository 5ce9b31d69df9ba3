"""The figures about work: times, where a token's time goes, what the mask did, what became of requests."""

from collections.abc import Sequence

from harness.metrics.summary import Kind, Summary
from harness.report import chart_latency, chart_mass, chart_outcomes, chart_steps
from harness.report.figure import Figure, swatch
from harness.report.palette import Look


def latencies(summary: Summary, looks: Sequence[Look]) -> tuple[Figure, ...]:
    """How the times to the first token and per token are spread."""
    kinds: dict[Kind, str] = {"ttft_s": "Time to first token", "tpot_s": "Time per output token"}
    caption = "Shape: median. Thick: the middle half. Tall mark: 90% are below. Ends: 1% and 99%."
    figures = []
    for kind, title in kinds.items():
        times = {arm: found[kind] for arm, found in summary.latency.items() if kind in found and found[kind].n}
        if times:
            figures.append(Figure(title, caption, chart_latency.chart(title, looks, times)))
    return tuple(figures)


def steps(summary: Summary, looks: Sequence[Look]) -> tuple[Figure, ...]:
    """Where an output token's time goes; none where the deployment does not report it."""
    if not summary.split:
        return ()
    caption = (
        "Wall time an output token, over whole blocks. The thin bar is the making of masks wherever it ran: where it "
        "is longer than the wait, the rest was hidden."
    )
    legend = tuple((swatch(css), name) for css, name in (*chart_steps.PARTS, chart_steps.MADE))
    return (Figure("Where the time goes", caption, chart_steps.chart(looks, summary.split), legend),)


def mass(summary: Summary, looks: Sequence[Look]) -> tuple[Figure, ...]:
    """How much probability the mask kept; none where nothing was masked."""
    if not any(one.tokens for one in summary.wanted.values()):
        return ()
    caption = (
        "Over the constrained tokens: how much of the model's own probability the mask left. At 1 the mask changed "
        "nothing; near 0 the model wanted something else. Bars are scaled to each arm's tallest."
    )
    return (Figure("Probability kept by the mask", caption, chart_mass.chart(looks, summary.wanted)),)


def outcomes(summary: Summary, looks: Sequence[Look]) -> Figure:
    """What became of each request."""
    present = [o for o in chart_outcomes.OUTCOMES if any(getattr(c, o) for c in summary.counts.values())]
    legend = tuple((swatch(outcome), chart_outcomes.title(outcome)) for outcome in present)
    caption = "Every request of every arm. A truncated answer ran out of tokens; it is not counted as a format fault."
    return Figure("What became of each request", caption, chart_outcomes.chart(looks, summary.counts), legend)
