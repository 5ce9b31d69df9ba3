"""The order of a run: blocks of the same examples, in which each arm runs alone, in random order.

Drift of the machine then hits all arms alike, and the throughput of a block belongs to one arm.
"""

import random
from collections.abc import Sequence, Set

import msgspec

from harness.method import Method, arm_name


class Turn(msgspec.Struct, frozen=True):
    """One arm's turn in one block: the examples it is asked, without those it has answered before."""

    block: int
    method: Method
    examples: tuple[str, ...]


def turns(
    examples: Sequence[str], methods: Sequence[Method], size: int, seed: int, done: Set[tuple[str, str]] = frozenset()
) -> tuple[Turn, ...]:
    """All turns of a run in order; `done` holds (arm, example) pairs that need no asking. The order does not depend on
    what is done."""
    made: list[Turn] = []
    for block, start in enumerate(range(0, len(examples), size)):
        order = list(methods)
        random.Random(f"{seed}|{block}").shuffle(order)
        for method in order:
            missing = tuple(e for e in examples[start : start + size] if (arm_name(method), e) not in done)
            if missing:
                made.append(Turn(block, method, missing))
    return tuple(made)
