"""Which arms are compared with which."""

from collections.abc import Mapping, Sequence
from itertools import combinations

Pairing = Sequence[tuple[str, str]]
"""Arm and the arm it is compared against."""


def each_with_each(arms: Sequence[str]) -> Pairing:
    """All pairs of arms, the later against the earlier."""
    return [(later, earlier) for earlier, later in combinations(arms, 2)]


def same_arms(runs: Mapping[str, Sequence[str]]) -> Pairing:
    """For several runs, name -> arms: each arm of a run (as `run:arm`) against the same arm of the runs before it.

    Where no two runs have an arm in common, every arm against those of the runs before.
    """
    across = [
        (f"{later}:{ours}", f"{earlier}:{theirs}", ours == theirs)
        for earlier, later in combinations(runs, 2)
        for ours in runs[later]
        for theirs in runs[earlier]
    ]
    same = [(arm, against) for arm, against, alike in across if alike]
    return same or [(arm, against) for arm, against, _ in across]
