"""Throughput over interleaved blocks, latency, first use apart from warm use, and where the time of a step went."""

from typing import Literal, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.metrics.blocks import Block, timed
from harness.metrics.columns import Arm
from harness.metrics.estimate import Estimate, nothing
from harness.metrics.intervals import bounded_mean
from harness.metrics.judged import Floats, Ints
from harness.metrics.latency import ENOUGH_BLOCKS, LEVELS, quantile
from harness.metrics.quality import counts
from harness.metrics.ratios import by_group, complement, ratio
from harness.metrics.targets import Targets

RecordKind = Literal["ttft_s", "tpot_s", "e2e_s"]
KINDS: tuple[RecordKind, ...] = get_args(RecordKind)
"""The times that every record has; times between tokens are only in traces."""


class Split(msgspec.Struct, frozen=True):
    """Where the wall time of an arm's whole blocks went, in seconds per output token; the parts sum to `total_s`.

    `forward_s`: the model. `mask_s`: the loop standing still for masks (made out of its sight, a mask costs nothing
    here). `apply_s`: putting masks on logits. `other_s`: the rest (sampling, compiling, queueing, transport).
    A part is None where the deployment does not report it (its time is then within `other_s`) or nothing was masked.
    `made_s`: making masks wherever it ran, hidden or not; not one of the parts.
    """

    tokens: int
    total_s: float
    forward_s: float | None
    mask_s: float | None
    apply_s: float | None
    other_s: float
    made_s: float | None


def throughput(whole: tuple[Block, ...]) -> dict[str, Estimate]:
    """Rates over whole blocks; n counts blocks."""
    return {
        "tokens_per_s": _rate(whole, [block.tokens for block in whole]),
        "requests_per_s": _rate(whole, [block.requests for block in whole]),
    }


def goodput(arm: Arm, whole: tuple[Block, ...], targets: Targets) -> dict[str, Estimate]:
    """Rates of answers in time, over whole blocks; n counts blocks.

    Goodput has no value without a target: it would be the rate of all answers under another name. Correct goodput has
    none where an answer has no gold one: it could not be right.
    """
    found: dict[str, Estimate] = {}
    if targets.limits_s:
        found["goodput_per_s"] = _rate(whole, [block.good for block in whole])
    if not counts(arm).unlabelled:
        found["correct_goodput_per_s"] = _rate(whole, [block.correct for block in whole])
    return found


def _rate(whole: tuple[Block, ...], counted: list[int]) -> Estimate:
    seconds = np.array([block.seconds for block in whole], dtype=np.float64)
    return ratio(np.array(counted, dtype=np.float64), seconds)


def latencies(arm: Arm) -> dict[str, Estimate]:
    """`ttft_s_p50` and so on; n counts requests."""
    found: dict[str, Estimate] = {}
    for kind in KINDS:
        times, block = times_of(arm, kind)
        found |= {f"{kind}_p{level * 100:.0f}": quantile(times, level, block) for level in LEVELS}
    return found


def times_of(arm: Arm, kind: RecordKind) -> tuple[Floats, Ints]:
    """The known times of one kind of all answers, and the blocks they were in."""
    rows = timed(arm)
    rows = rows[~np.isnan(arm.number[kind][rows])]
    return arm.number[kind][rows], arm.count["block"][rows]


def first_uses(arm: Arm, whole: tuple[Block, ...]) -> dict[str, Estimate]:
    """What the first use of a constraint costs, and the throughput without it.

    A request is cold where it paid for compiling its constraint. Requests overlap, so a block's seconds are shared
    among its requests by how long each took: warm throughput is the warm requests' tokens over their share. With one
    request at a time that is exactly tokens over their own seconds. Unknown where the deployment reports no compile
    time.
    """
    rows = timed(arm)
    compile_s = arm.number["compile_s"][rows]
    if np.isnan(compile_s).all():
        return dict.fromkeys(("warm_tokens_per_s", "compile_s", "cold"), nothing())
    cold = np.nan_to_num(compile_s) > 0
    block, e2e_s = arm.count["block"][rows], arm.number["e2e_s"][rows]
    kept = np.isin(block, [one.block for one in whole])
    seconds = np.array([one.seconds for one in whole], dtype=np.float64)
    warm_share = by_group((e2e_s * ~cold)[kept], block[kept]) / by_group(e2e_s[kept], block[kept])
    tokens = by_group(np.where(cold, 0.0, arm.count["tokens"][rows])[kept], block[kept])
    return {
        "warm_tokens_per_s": ratio(tokens, seconds * warm_share),
        "compile_s": ratio(compile_s[cold], np.ones(int(cold.sum()))),
        "cold": bounded_mean(cold.astype(np.float64)),
    }


def step_costs(arm: Arm) -> dict[str, Estimate]:
    """Seconds per output token of each kind of work, and the share of mask time that was hidden; n counts requests.

    Hidden = 1 - (time the loop stood still for masks) / (time masks took to make). Made in the loop, a mask is all
    waited for: 0. Below 0 the loop waited longer than making took (a busy or slow worker).
    """
    found = {
        f"{name}_per_token": _ratio_over_requests(arm, arm.number[name], arm.count["tokens"].astype(np.float64))
        for name in ("mask_s", "wait_s", "forward_s", "apply_s")
    }
    made = np.where(np.isnan(arm.number["wait_s"]), np.nan, arm.number["mask_s"])
    return found | {"mask_hidden": complement(_ratio_over_requests(arm, arm.number["wait_s"], made))}


def split(arm: Arm, whole: tuple[Block, ...]) -> Split | None:
    """Where the wall time of whole blocks went; None where there is no whole block or no token."""
    rows = timed(arm)
    rows = rows[np.isin(arm.count["block"][rows], [block.block for block in whole])]
    tokens = int(arm.count["tokens"][rows].sum())
    if tokens == 0:
        return None
    total_s = sum(block.seconds for block in whole) / tokens
    forward_s, mask_s, apply_s, made_s = (
        _sum_known(arm.number[name][rows], tokens) for name in ("forward_s", "wait_s", "apply_s", "mask_s")
    )
    other_s = total_s - sum(part for part in (forward_s, mask_s, apply_s) if part is not None)
    return Split(tokens, total_s, forward_s, mask_s, apply_s, other_s, made_s)


def _sum_known(values: Floats, tokens: int) -> float | None:
    return None if np.isnan(values).all() else float(np.nansum(values)) / tokens


def _ratio_over_requests(arm: Arm, over: Floats, under: Floats) -> Estimate:
    """The ratio over answers where both are known; its spread over blocks, over requests where blocks are few."""
    known: NDArray[np.bool_] = arm.answered & ~np.isnan(over) & ~np.isnan(under)
    block, n = arm.count["block"][known], int(known.sum())
    if np.unique(block).size < ENOUGH_BLOCKS:
        return ratio(over[known], under[known])
    return ratio(by_group(over[known], block), by_group(under[known], block), n)
