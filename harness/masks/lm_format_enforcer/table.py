"""What is computed once a vocabulary and shared by all automata: the tree of tokens, and what a JSON string may hold.

The library makes its table by decoding every token through transformers, which does not import under transformers 5.
"""

import json
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from harness.mask import Mask, words
from harness.masks.lm_format_enforcer.letters import OTHER
from harness.masks.lm_format_enforcer.memory import LIMIT_BYTES, Memory
from harness.masks.lm_format_enforcer.pieces import Piece, Pieces
from harness.masks.lm_format_enforcer.tree import Tree
from harness.masks.stopping import Ends
from harness.vocabulary import Vocabulary

LENGTHS = 512
"""String masks kept a vocabulary, one for each pair of limits that makes a difference (usually under a hundred)."""


class Table:
    """One vocabulary as the walk over the library's parsers needs it."""

    def __init__(self, vocabulary: Vocabulary, limit_bytes: int = LIMIT_BYTES) -> None:
        self.vocabulary = vocabulary
        self.ends = Ends(vocabulary)
        self.memory = Memory(limit_bytes)
        self.pieces = Pieces(vocabulary, self.ends.spelling)
        self.tree = Tree(self.pieces.all)
        self.alphabet = "".join({*self.tree.letters, OTHER})
        self._strings = _Strings(self.pieces.all)
        self._string_mask = lru_cache(maxsize=LENGTHS)(self._make_string_mask)

    def mask(self, tokens: list[int] | NDArray[np.int64]) -> Mask:
        """The mask that allows `tokens`."""
        bits = np.zeros(words(self.vocabulary.width) * 32, dtype=np.bool_)
        bits[np.asarray(tokens, dtype=np.int64)] = True
        mask: Mask = np.packbits(bits, bitorder="little").view(np.int32)
        return mask

    def string_mask(self, least: int, most: int) -> Mask:
        """The library's shortcut: the tokens that may go on with a JSON string which may hold `most` more characters
        and must hold `least` more before it ends. Read only."""
        longest = self._strings.longest + 1
        return self._string_mask(min(least, longest), min(most, longest))

    def _make_string_mask(self, least: int, most: int) -> Mask:
        mask = self.mask(self._strings.tokens(least, most))
        mask.setflags(write=False)
        return mask


class _Strings:
    """The tokens that may stand in a JSON string, by length."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        free = [piece for piece in pieces if free_text(piece.text + OTHER if piece.rest else piece.text)]
        self._ids = np.array([piece.token for piece in free], dtype=np.int64)
        self._lengths = np.array([len(piece.text) + bool(piece.rest) for piece in free], dtype=np.int64)
        self._closing = np.array([piece.text.endswith('"') and not piece.rest for piece in free], dtype=np.bool_)
        self.longest = int(self._lengths.max(initial=0))

    def tokens(self, least: int, most: int) -> NDArray[np.int64]:
        closing = self._closing & (self._lengths > least) & (self._lengths <= most + 1)
        return self._ids[closing | (~self._closing & (self._lengths <= most))]


def free_text(text: str) -> bool:
    """Whether the library lets a token of this text stand in a JSON string without looking at its characters."""
    if "\\" in text[:-1] or '"' in text[:-1] or "\n" in text or "\r" in text:
        try:
            json.loads(f'"{text}"')
        except json.JSONDecodeError:
            return False
    return bool(text)
