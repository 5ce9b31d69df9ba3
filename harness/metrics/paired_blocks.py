"""Blocks that two arms both ran whole, on the same examples: what their speeds are compared over."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.metrics.blocks import Block, timed
from harness.metrics.columns import Arm
from harness.metrics.judged import Floats, Ints
from harness.metrics.speed import KINDS

SPEEDS = ("tokens_per_s", "requests_per_s", *(f"{kind}_p50" for kind in KINDS))
"""Rates over a block, and the medians of its requests' times."""


@dataclass(frozen=True)
class BlockSpeeds:
    """The whole blocks of one arm, ascending: their numbers (blocks,), a fingerprint of the examples that were asked in
    each (blocks,), and the values of `SPEEDS` (blocks, speeds), NaN where there is none."""

    block: Ints
    asked: NDArray[np.uint64]
    speeds: Floats


def block_speeds(arm: Arm, whole: tuple[Block, ...]) -> BlockSpeeds:
    """The speeds of an arm in each of its whole blocks."""
    block = np.array([one.block for one in whole], dtype=np.intp)
    rows = timed(arm)
    rows = rows[np.isin(arm.count["block"][rows], block)]
    seconds = np.array([one.seconds for one in whole])
    rates = [np.array(counts, dtype=np.float64) / seconds for counts in _counted(whole)]
    medians = [group_medians(arm.number[kind][rows], arm.count["block"][rows]) for kind in KINDS]
    return BlockSpeeds(block, _asked(arm, block), np.array([*rates, *medians]).T.reshape(-1, len(SPEEDS)))


def log_rates(first: BlockSpeeds, second: BlockSpeeds) -> dict[str, Floats]:
    """The log of first over second in each of `SPEEDS`, for each shared block where both are above 0."""
    _, one, two = np.intersect1d(first.block, second.block, assume_unique=True, return_indices=True)
    same = first.asked[one] == second.asked[two]
    ours, theirs = first.speeds[one[same]], second.speeds[two[same]]
    known = (ours > 0) & (theirs > 0)
    return {
        name: np.log(ours[known[:, place], place]) - np.log(theirs[known[:, place], place])
        for place, name in enumerate(SPEEDS)
    }


def group_medians(values: Floats, group: NDArray[np.int64]) -> Floats:
    """The median of the known values in each group that occurs, ascending by group; NaN where none is known."""
    order = np.lexsort((values, group))
    names, starts = np.unique(group[order], return_index=True)
    known = np.add.reduceat(~np.isnan(values[order]), starts, dtype=np.intp) if names.size else np.empty(0, np.intp)
    lower, upper = starts + np.maximum(known - 1, 0) // 2, starts + known // 2
    upper = np.where(known > 0, upper, lower)
    return np.asarray((values[order][lower] + values[order][upper]) / 2)


def _counted(whole: tuple[Block, ...]) -> tuple[list[int], list[int]]:
    return [one.tokens for one in whole], [one.requests for one in whole]


def _asked(arm: Arm, block: Ints) -> NDArray[np.uint64]:
    """For each block a number that is equal, but for a chance of 1 in 2^64, exactly where the same were asked."""
    mixed = (arm.example.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    order = np.argsort(arm.count["block"], kind="stable")
    names, starts = np.unique(arm.count["block"][order], return_index=True)
    return np.add.reduceat(mixed[order], starts)[np.searchsorted(names, block)]
