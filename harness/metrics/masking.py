"""What the mask did: the mass it kept, what it forced, and what the model wanted where it was forbidden."""

import msgspec


class Wish(msgspec.Struct, frozen=True):
    """A token that the model wanted and the mask forbade: how often, how probable it was on average, and the first
    examples where it happened. Token ids, because metrics know no vocabulary; `instead` is what was said most often."""

    token: int
    instead: int
    count: int
    probability: float
    examples: tuple[str, ...]


class Wanted(msgspec.Struct, frozen=True):
    """Over the constrained tokens of one arm whose traces were read.

    `forbidden`: the unmasked most likely token was not allowed. `undecided`: sampled another token, and the trace
    cannot say whether the most likely one was allowed. `wishes`: the most frequent first.
    `kept` is a histogram of the per-token mass the mask kept, over `edges`.
    """

    answers: int
    tokens: int
    forbidden: int
    undecided: int
    forced: int
    wishes: tuple[Wish, ...]
    edges: tuple[float, ...]
    kept: tuple[int, ...]
