"""Where two engines' masks differ on the same text: counted over all steps, and a few tokens drawn to be judged."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.mask_bench.rows import PairRow

Masks = NDArray[np.uint32]
"""Shape (steps, words)."""


class Drawn(NamedTuple):
    """A disputed token: `of` many are disputed this way in the schema."""

    allower: str
    forbidder: str
    case: int
    step: int
    token: int
    of: int


def pair_rows(masks: Mapping[str, Sequence[Masks]]) -> Iterator[PairRow]:
    """Every two engines on every text that both walked, on the steps that both reached."""
    for first, second in combinations(masks, 2):
        counted = np.zeros(7, dtype=np.int64)
        for ours, theirs in zip(masks[first], masks[second], strict=False):
            counted += _counts(ours, theirs)
        yield PairRow(first, second, *counted.tolist())


def _counts(ours: Masks, theirs: Masks) -> NDArray[np.int64]:
    steps = min(len(ours), len(theirs))
    a, b = ours[:steps], theirs[:steps]
    first, second, both = (np.bitwise_count(found).sum(axis=1) for found in (a & ~b, b & ~a, a & b))
    differing = ((first > 0) | (second > 0)).sum()
    numbers = (steps, differing, (first > 0).sum(), (second > 0).sum(), first.sum(), second.sum(), both.sum())
    return np.array(numbers, dtype=np.int64)


def drawn(masks: Mapping[str, Sequence[Masks]], samples: int, random: Random) -> Iterator[Drawn]:
    """For each ordered pair, `samples` disputed tokens: a step at random, then a token at random."""
    for allower, forbidder in permutations(masks, 2):
        places, of = _places(masks[allower], masks[forbidder])
        for case, step in random.sample(places, min(samples, len(places))):
            tokens = _bits(masks[allower][case][step] & ~masks[forbidder][case][step])
            yield Drawn(allower, forbidder, case, step, int(random.choice(tokens.tolist())), of)


def _places(ours: Sequence[Masks], theirs: Sequence[Masks]) -> tuple[list[tuple[int, int]], int]:
    """The (case, step) places where ours allows what theirs forbids, and how many tokens these are in all."""
    places, of = [], 0
    for case, (a, b) in enumerate(zip(ours, theirs, strict=False)):
        steps = min(len(a), len(b))
        counts = np.bitwise_count(a[:steps] & ~b[:steps]).sum(axis=1)
        places += [(case, int(step)) for step in np.flatnonzero(counts)]
        of += int(counts.sum())
    return places, of


def _bits(row: NDArray[np.uint32]) -> NDArray[np.int64]:
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
