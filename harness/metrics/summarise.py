"""From records to the summary of a run, or of several runs whose arms are named apart: one pass over what metrics read
of every record, and one over the traces of a sample."""

from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np

from harness.metrics import quality, speed
from harness.metrics.blocks import Block, interrupted, whole_blocks
from harness.metrics.calibration import calibration
from harness.metrics.columns import Arm, Columns, from_slims
from harness.metrics.confidences import CONFIDENCES, Confidence, judged_answers
from harness.metrics.estimate import Estimate, nothing
from harness.metrics.judged import Floats, Ints, Judged
from harness.metrics.latency import Distribution, distribution, edges
from harness.metrics.masking import masking
from harness.metrics.names import NAMES
from harness.metrics.paired_blocks import block_speeds
from harness.metrics.pairing import Pairing, each_with_each
from harness.metrics.pairs import Side, compare
from harness.metrics.recalibration import Recalibration, recalibration
from harness.metrics.reliability import reliability
from harness.metrics.speed import KINDS
from harness.metrics.summary import Kind, Summary
from harness.metrics.targets import NO_TARGETS, Targets
from harness.metrics.traces import Traces, collect
from harness.metrics.whole import Line, read_sample
from harness.record import Slim

SAMPLE = 5_000
"""Examples whose traces are read; of more, about so many, the same in every arm."""

Answers = dict[str, dict[Confidence, Judged]]


def summarise(
    records: Iterable[Slim],
    task: str,
    deployment: str,
    seed: int,
    *,
    order: Sequence[str] = (),
    pairing: Pairing | None = None,
    lines: Iterable[Line] = (),
    greedy: bool = False,
    targets: Targets = NO_TARGETS,
) -> Summary:
    """The summary of `records`.

    `order`: arms in the order of tables (else as first seen). `pairing`: which arms are compared (else each with each).
    `lines`: the same records as lines, read after `records` for what is in no column; without them the times between
    tokens, classwise ECE and what the model wanted have no value. `greedy`: temperature was 0. `targets`: of goodput.
    Raises ValueError for records that cannot be measured (two of one arm and example; a confidence above 1).
    """
    columns = from_slims(records, order)
    traces = collect(read_sample(lines, SAMPLE / max(columns.examples, 1)), greedy)
    blocks = {name: whole_blocks(arm, targets) for name, arm in columns.arms.items()}
    answers: Answers = {
        name: {which: judged_answers(arm, which) for which in CONFIDENCES} for name, arm in columns.arms.items()
    }
    sides = {name: Side(name, arm, block_speeds(arm, blocks[name])) for name, arm in columns.arms.items()}
    asked = each_with_each(tuple(columns.arms)) if pairing is None else pairing
    return Summary(
        task=task,
        deployment=deployment,
        seed=seed,
        arms={
            name: _metrics(arm, blocks[name], answers[name], traces.get(name), seed)
            | speed.goodput(arm, blocks[name], targets)
            for name, arm in columns.arms.items()
        },
        pairs=compare([(sides[one], sides[two]) for one, two in asked if one in sides and two in sides], seed),
        counts={name: quality.counts(arm) for name, arm in columns.arms.items()},
        reliability={
            name: {which: reliability(some) for which, some in given.items() if some.n}
            for name, given in answers.items()
        },
        recalibration=_recalibrations(answers, seed),
        latency=_latency(columns, traces),
        split={name: split for name, arm in columns.arms.items() if (split := speed.split(arm, blocks[name]))},
        blocks={name: whole for name, whole in blocks.items() if whole},
        wanted={name: wanted for name, some in traces.items() if (wanted := some.wanted())},
        notes=tuple(_notes(columns, blocks, bool(traces))),
        targets=targets,
    )


def _metrics(
    arm: Arm, blocks: tuple[Block, ...], answers: dict[Confidence, Judged], traces: Traces | None, seed: int
) -> dict[str, Estimate]:
    """Every name in `NAMES`, in that order."""
    found = quality.quality(arm) | masking(arm) | speed.latencies(arm) | speed.step_costs(arm)
    found |= speed.throughput(blocks) | speed.first_uses(arm, blocks)
    for which, some in answers.items():
        found |= {f"{which}_{name}": estimate for name, estimate in calibration(some, seed).items()}
    if traces is not None:
        found |= traces.metrics(seed)
    return {name: found.get(name, nothing()) for name in NAMES}


def _recalibrations(answers: Answers, seed: int) -> dict[str, dict[Confidence, Recalibration]]:
    found = {
        name: {which: done for which, some in given.items() if (done := recalibration(some, seed))}
        for name, given in answers.items()
    }
    return {name: given for name, given in found.items() if given}


def _latency(columns: Columns, traces: dict[str, Traces]) -> dict[str, dict[Kind, Distribution]]:
    times: dict[Kind, dict[str, tuple[Floats, Ints]]] = {
        kind: {name: speed.times_of(arm, kind) for name, arm in columns.arms.items()} for kind in KINDS
    }
    times["itl_s"] = {name: traces[name].between_tokens() for name in columns.arms if name in traces}
    bars = {kind: edges([values for values, _ in given.values()]) for kind, given in times.items()}
    found: dict[str, dict[Kind, Distribution]] = {}
    for name in columns.arms:
        measured = {kind: given[name] for kind, given in times.items() if name in given and given[name][0].size}
        if measured:
            found[name] = {kind: distribution(*pair, bars[kind]) for kind, pair in measured.items()}
    return found


def _notes(columns: Columns, blocks: dict[str, tuple[Block, ...]], traced: bool) -> list[str]:
    notes = []
    for name, arm in columns.arms.items():
        if missing := interrupted(arm, blocks[name]):
            notes.append(f"{name}: blocks that were interrupted, and are in no throughput: {missing}.")
        if again := quality.counts(arm).retried:
            notes.append(f"{name}: requests that were sent more than once, and are in no time and no rate: {again}.")
    if len({arm.example.tobytes() for arm in columns.arms.values()}) > 1:
        shared = reduce(np.intersect1d, (arm.example for arm in columns.arms.values())).size
        notes.append(
            f"The arms do not have records of the same examples: {shared:,} are shared by all of {columns.examples:,}. "
            "The table has all of each arm; comparisons are on the examples that two arms share."
        )
    unlabelled = max((quality.counts(arm).unlabelled for arm in columns.arms.values()), default=0)
    if unlabelled:
        notes.append(f"{unlabelled:,} answered examples have no gold answer and are in no accuracy or calibration.")
    if columns.clustered:
        sizes = f"{columns.examples:,} examples come in {columns.clusters:,} clusters"
        notes.append(f"The {sizes}; intervals and tests rest on those.")
    if traced and columns.examples > SAMPLE:
        notes.append(f"Traces were read of about {SAMPLE:,} of {columns.examples:,} examples, the same in every arm.")
    return notes
