"""What a mask is, and the four small protocols of a mask engine.

A mask is a row of int32 words, 32 tokens each, lowest bit first, 1 means allowed; `width` is the number of logits of
the model, which can be larger than the tokenizer: tokens past its end are never allowed.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from harness.constraint import Constraint
from harness.vocabulary import Vocabulary

Mask = NDArray[np.int32]
"""Shape `(words(width),)`, dtype int32."""


class Matcher(Protocol):
    """The state of one sequence under one constraint."""

    def fill(self, mask: Mask) -> None:
        """Write the tokens allowed next into `mask` (every word of it). The stop tokens are allowed exactly where the
        text so far is complete. After `finished()` only the stop tokens are allowed. Raises
        `harness.errors.Unsupported` where the text has led the library to one of its limits."""

    def advance(self, token: int) -> None:
        """Take `token` as said. Raises `ValueError` if the mask would not have allowed it."""

    def finished(self) -> bool:
        """Whether a stop token has been taken."""


class Automaton(Protocol):
    """A compiled constraint: immutable, shared by many matchers."""

    def matcher(self) -> Matcher:
        """A new matcher at the start of the text."""


class Compiler(Protocol):
    """An engine that knows one vocabulary."""

    def compile(self, constraint: Constraint) -> Automaton:
        """Compile; raises `harness.errors.Unsupported` with the reason if the engine cannot express `constraint`."""


class MaskEngine(Protocol):
    """A mask library. A module of `harness.masks` offers one as `ENGINE`."""

    @property
    def name(self) -> str: ...

    def version(self) -> str:
        """The version of the library that does the work."""

    def compiler(self, vocabulary: Vocabulary) -> Compiler:
        """Paid once a vocabulary."""


def words(width: int) -> int:
    """How many int32 words hold `width` tokens."""
    return (width + 31) // 32


def empty_mask(width: int) -> Mask:
    """A mask that allows nothing."""
    return np.zeros(words(width), dtype=np.int32)


def allow(mask: Mask, tokens: NDArray[np.int64]) -> None:
    """Set the bits of `tokens` (ids) in `mask`."""
    bits = np.left_shift(np.uint32(1), (tokens & 31).astype(np.uint32))
    np.bitwise_or.at(mask.view(np.uint32), tokens >> 5, bits)


def allowed(mask: Mask, width: int) -> NDArray[np.int64]:
    """The ids that `mask` allows, in ascending order."""
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[:width]
    return np.flatnonzero(bits)


def allows(mask: Mask, token: int) -> bool:
    """Whether `mask` allows `token`."""
    return bool((int(mask[token >> 5]) >> (token & 31)) & 1)
