"""The figures of one task, in reading order."""

from collections.abc import Sequence

from harness.metrics.summary import Summary
from harness.report.figure import Block
from harness.report.figures_answers import differences, tradeoff
from harness.report.figures_calibration import calibration
from harness.report.figures_work import latencies, mass, outcomes, steps
from harness.report.palette import Look


def blocks(summary: Summary, looks: Sequence[Look]) -> tuple[Block, ...]:
    """All figures in reading order; a block without figures is left out."""
    made = (
        Block("trade", "Accuracy and throughput", (*tradeoff(summary, looks), *differences(summary, looks))),
        calibration(summary, looks),
        Block("speed", "Speed", (*latencies(summary, looks), *steps(summary, looks))),
        Block("mask", "What the mask did", mass(summary, looks)),
        Block("outcomes", "Outcomes", (outcomes(summary, looks),)),
    )
    return tuple(block for block in made if block.figures)
