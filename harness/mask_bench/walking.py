"""How a worker walks an engine: along a known text, or on to some end that the masks allow."""

import statistics
import time
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import numpy as np

from harness.mask import Automaton, allowed, allows, empty_mask
from harness.mask_bench.messages import Walked
from harness.vocabulary import Vocabulary

MOST = 160
"""Tokens after which the search for an end is given up."""
LOOKS = 2001
CLOSING = (b"}", b"]", b'"')
OPENING = frozenset(b",[{")


def along(automaton: Automaton, ids: Sequence[int], width: int, look_us: float, most: int) -> Walked:
    """One mask a token, each timed together with taking the token before it. Processor time of all the process's
    threads: what else runs on the machine does not count, and a library's own threads do; `look_us`, what it takes to
    look at that clock, does not count either. The first `most` masks are kept."""
    us, rows, mask = list[float](), list[bytes](), empty_mask(width)
    matcher, refused = None, None
    for place, token in enumerate(ids):
        started = time.process_time_ns()
        if matcher is None:
            matcher = automaton.matcher()
        else:
            matcher.advance(ids[place - 1])
        matcher.fill(mask)
        us.append(max((time.process_time_ns() - started) / 1e3 - look_us, 0.0))
        if len(rows) < most:
            rows.append(mask.tobytes())
        if not allows(mask, token):
            refused = place
            break
    return Walked(tuple(us), refused, b"".join(rows))


def look_us() -> float:
    """Microseconds of processor time between two looks at that clock: the median of many."""
    looks = [time.process_time_ns() for _ in range(LOOKS)]
    return statistics.median(after - before for before, after in pairwise(looks)) / 1e3


def begins(automaton: Automaton, ids: Sequence[int]) -> bool:
    """Whether `ids` can be said."""
    matcher = automaton.matcher()
    try:
        for token in ids:
            matcher.advance(token)
    except ValueError:
        return False
    return True


def to_an_end(automaton: Automaton, ids: Sequence[int], known: Vocabulary, seed: int) -> str | None:
    """`ids` and what the masks allow after them, up to where the text may end, as short as that is easily had; None
    where no end was found or a token is refused."""
    matcher, mask, random, said = automaton.matcher(), empty_mask(known.width), Random(seed), list(ids)
    try:
        for token in ids:
            matcher.advance(token)
        while len(said) < len(ids) + MOST:
            matcher.fill(mask)
            if allows(mask, known.stop_ids[0]):
                return known.text(said)
            now = allowed(mask, known.width)
            if now.size == 0:
                return None
            said.append(_next(now, known, random))
            matcher.advance(said[-1])
    except ValueError:
        return None
    return None


def _next(now: "np.typing.NDArray[np.int64]", known: Vocabulary, random: Random) -> int:
    """A token that closes something, else one that opens nothing, else any."""
    spelt = {known.tokens[i]: int(i) for i in now if len(known.tokens[i] or b"") == 1}
    if (closing := next((spelt[token] for token in CLOSING if token in spelt), None)) is not None:
        return closing
    some = [int(i) for i in random.sample(now.tolist(), min(now.size, 200))]
    quiet = [i for i in some if not OPENING & set(known.tokens[i] or b"") and (known.tokens[i] or b"").strip()]
    return random.choice(quiet or some)
