"""Blocks of requests that one arm had the deployment for alone: what throughput is measured over."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.metrics.columns import Arm
from harness.metrics.judged import Floats, Ints
from harness.metrics.quality import right, valid
from harness.metrics.targets import Targets


class Block(msgspec.Struct, frozen=True):
    """One block of one arm, run alone on the deployment within one session. Failed requests are in neither count.

    `seconds` runs from the first sending to the last completion; `good` counts requests in time, `correct` those in
    time, valid and right (all requests are in time where no target was set).
    """

    block: int
    session: int
    requests: int
    tokens: int
    seconds: float
    good: int
    correct: int


def timed(arm: Arm) -> Ints:
    """The rows with an answer whose times are known, ordered by block. A request that was sent again has none: what was
    measured is its last sending alone."""
    rows = np.flatnonzero(_came(arm) & (arm.count["attempts"] == 1))
    return rows[np.argsort(arm.count["block"][rows], kind="stable")]


def whole_blocks(arm: Arm, targets: Targets) -> tuple[Block, ...]:
    """The blocks that were not interrupted: all of an arm's blocks but those that span sessions of a resumed run, or in
    which a request had to be sent again (its server died, say)."""
    rows = timed(arm)
    if rows.size == 0:
        return ()
    names, starts = np.unique(arm.count["block"][rows], return_index=True)
    session = arm.count["session"][rows]
    first, last = np.minimum.reduceat(session, starts), np.maximum.reduceat(session, starts)
    sent = arm.number["sent_s"][rows]
    done = sent + arm.number["e2e_s"][rows]
    seconds = np.maximum.reduceat(done, starts) - np.minimum.reduceat(sent, starts)
    good = in_time(arm, targets)[rows]
    sums = [
        np.add.reduceat(values, starts)
        for values in (np.ones(rows.size), arm.count["tokens"][rows], good, good * right(arm)[rows] * valid(arm)[rows])
    ]
    return tuple(
        Block(int(names[i]), int(first[i]), int(sums[0][i]), int(sums[1][i]), float(seconds[i]), int(sums[2][i]),
              int(sums[3][i]))
        for i in np.flatnonzero((first == last) & (seconds > 0) & ~np.isin(names, _sent_again(arm)))
    )  # fmt: skip


def interrupted(arm: Arm, whole: tuple[Block, ...]) -> int:
    """How many of an arm's blocks are not whole."""
    return int(np.unique(arm.count["block"][_came(arm)]).size) - len(whole)


def _came(arm: Arm) -> NDArray[np.bool_]:
    return arm.answered & ~np.isnan(arm.number["e2e_s"])


def _sent_again(arm: Arm) -> NDArray[np.int64]:
    """The blocks with a request that was sent more than once."""
    return np.unique(arm.count["block"][arm.count["attempts"] > 1])


def in_time(arm: Arm, targets: Targets) -> Floats:
    """1 for a request within all targets, else 0. A time that does not exist (TPOT of one token) breaks no target."""
    late = np.zeros(arm.n, dtype=np.bool_)
    for name, limit_s in targets.limits_s.items():
        late |= arm.number[name] > limit_s
    return (~late & ~np.isnan(arm.number["e2e_s"])).astype(np.float64)
