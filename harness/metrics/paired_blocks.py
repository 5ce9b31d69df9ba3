"""Blocks that two arms both ran whole, on the same examples: what their speeds are compared over."""

import msgspec
import numpy as np

from harness.metrics.blocks import Block, timed
from harness.metrics.columns import Arm
from harness.metrics.judged import Floats
from harness.metrics.speed import KINDS


class Side(msgspec.Struct, frozen=True):
    """One arm of a pair: its name, its columns, its whole blocks."""

    name: str
    arm: Arm
    blocks: tuple[Block, ...]


SPEEDS = ("tokens_per_s", "requests_per_s", *(f"{kind}_p50" for kind in KINDS))
"""Rates over a block, and the medians of its requests' times."""


def log_rates(first: Side, second: Side) -> dict[str, Floats]:
    """The log of first over second in each of `SPEEDS`, for each shared block where both are above 0."""
    mine, others = _per_block(first), _per_block(second)
    shared = [block for block in mine if block in others and mine[block][0] == others[block][0]]
    rates = np.array([[side[block][1] for block in shared] for side in (mine, others)]).reshape(2, -1, len(SPEEDS))
    found = {}
    for place, name in enumerate(SPEEDS):
        ours, theirs = rates[:, (rates[:, :, place] > 0).all(axis=0), place]
        found[name] = np.log(ours) - np.log(theirs)
    return found


def _per_block(side: Side) -> dict[int, tuple[int, tuple[float, ...]]]:
    """Of each whole block: a fingerprint of the examples that were asked in it, and the values of `SPEEDS`."""
    arm, rows = side.arm, timed(side.arm)
    names, starts = np.unique(arm.count["block"][rows], return_index=True)
    slices = dict(zip(names.tolist(), np.split(rows, starts[1:]), strict=True)) if rows.size else {}
    asked = _fingerprints(arm)
    return {
        one.block: (
            asked[one.block],
            (
                one.tokens / one.seconds,
                one.requests / one.seconds,
                *(_median(arm.number[kind][slices[one.block]]) for kind in KINDS),
            ),
        )
        for one in side.blocks
    }


def _fingerprints(arm: Arm) -> dict[int, int]:
    """For each block a number that is equal, but for a chance of 1 in 2^64, exactly where the same were asked."""
    mixed = (arm.example.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    order = np.argsort(arm.count["block"], kind="stable")
    names, starts = np.unique(arm.count["block"][order], return_index=True)
    return dict(zip(names.tolist(), np.add.reduceat(mixed[order], starts).tolist(), strict=True))


def _median(times: Floats) -> float:
    known = times[~np.isnan(times)]
    return float(np.median(known)) if known.size else 0.0
