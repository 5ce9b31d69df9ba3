"""When an answer may end: the same rule for every engine, so that none ends early, late or on a special token.

A library says which tokens continue the text and whether the text is complete; what ends it is decided here.
"""

from typing import Protocol

import numpy as np

from harness.mask import Mask, allow, empty_mask
from harness.vocabulary import Vocabulary


class Text(Protocol):
    """What a library knows of one sequence."""

    def fill(self, mask: Mask) -> None:
        """Write the tokens that continue the text into every word of `mask`; bits of stop tokens, special tokens and
        padding do not matter."""

    def take(self, token: int) -> bool:
        """Add a token that spells text; False, and nothing has changed, where it does not continue the text."""

    def complete(self) -> bool:
        """Whether the text so far may end here."""


class Ends:
    """The tokens of one vocabulary that spell text, and those that stop."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        stops = frozenset(vocabulary.stop_ids)
        spelling = [i for i, token in enumerate(vocabulary.tokens) if token and i not in stops]
        self.stops = stops
        self.spelling = frozenset(spelling)
        self.stop_mask = empty_mask(vocabulary.width)
        self.spelling_mask = empty_mask(vocabulary.width)
        allow(self.stop_mask, np.array(sorted(stops), dtype=np.int64))
        allow(self.spelling_mask, np.array(spelling, dtype=np.int64))


class Stopping:
    """A matcher (`harness.mask.Matcher`) made of a `Text` and the rule above."""

    def __init__(self, text: Text, ends: Ends) -> None:
        self._text = text
        self._ends = ends
        self._finished = False

    def fill(self, mask: Mask) -> None:
        if self._finished:
            np.copyto(mask, self._ends.stop_mask)
            return
        self._text.fill(mask)
        np.bitwise_and(mask, self._ends.spelling_mask, out=mask)
        if self._text.complete():
            np.bitwise_or(mask, self._ends.stop_mask, out=mask)

    def advance(self, token: int) -> None:
        if token in self._ends.stops:
            if not (self._finished or self._text.complete()):
                raise ValueError(f"token {token} stops the text before it is complete")
            self._finished = True
        elif self._finished:
            raise ValueError(f"token {token} comes after the stop token")
        elif token not in self._ends.spelling or not self._text.take(token):
            raise ValueError(f"token {token} does not continue the text")

    def finished(self) -> bool:
        return self._finished
