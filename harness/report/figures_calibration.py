"""The figures about calibration: a reliability diagram for each arm, under each confidence."""

from collections.abc import Sequence

from harness.metrics.summary import Confidence, Summary
from harness.report import chart_reliability, numbers
from harness.report.figure import Block, Figure
from harness.report.palette import Look
from harness.report.reading import NOTHING, confidence_of

MEANINGS: dict[Confidence, str] = {
    "label": "the model's own probability of the label it gave, among all labels",
    "path": "the product of the masked probabilities of the tokens it gave",
    "raw": "the product of the unmasked probabilities of the tokens it gave",
}


def calibration(summary: Summary, looks: Sequence[Look]) -> Block:
    """The diagrams under the confidence that the report puts first; those under the others are folded."""
    first = confidence_of(summary)
    others = [_block(summary, looks, confidence) for confidence in MEANINGS if confidence != first]
    folded = tuple(block for block in others if block.figures)
    shown = _block(summary, looks, first)
    without = [look.arm for look in looks if not _has(summary, look, first)]
    missing = f" Not drawn, for lack of an answer with such a confidence: {', '.join(without)}." if without else ""
    text = (
        f"Confidence here is {shown.title}. On the diagonal an arm is right as often as it is sure. Bars are 95% "
        f"bands, larger marks hold more answers, bins without answers are not drawn.{missing}"
    )
    return Block("calibration", "Calibration", shown.figures, text, True, folded)


def _block(summary: Summary, looks: Sequence[Look], confidence: Confidence) -> Block:
    figures = [_reliability(summary, look, confidence) for look in looks if _has(summary, look, confidence)]
    return Block(confidence, f"“{confidence}”: {MEANINGS[confidence]}", tuple(figures), "", True)


def _has(summary: Summary, look: Look, confidence: Confidence) -> bool:
    diagram = summary.reliability.get(look.arm, {}).get(confidence)
    return diagram is not None and diagram.n > 0


def _reliability(summary: Summary, look: Look, confidence: Confidence) -> Figure:
    diagram = summary.reliability[look.arm][confidence]
    ece = summary.arms[look.arm].get(f"{confidence}_ece", NOTHING)
    between = numbers.between(numbers.fixed, ece) or numbers.NO_INTERVAL
    without = f", {diagram.without:,} without confidence" if diagram.without else ""
    caption = f"ECE {numbers.fixed(ece.value)} ({between}), n\u00a0=\u00a0{diagram.n:,}{without}"
    return Figure(f"{look.letter} {look.arm}", caption, chart_reliability.chart(look, diagram))
