"""The characters that may come next, and the first bytes of those that no single token spells."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from harness.masks.lm_format_enforcer.pieces import Pieces
from harness.masks.utf8 import reach

LETTER_BYTES = 150
"""What a letter costs in a set: the letter, its place in the set and in the list (measured)."""

OTHER = "\ufffd"
"""Stands, in the library's alphabet, for every character that is neither in a token nor in the constraint."""


class Letters:
    """One set of next characters; states with the same set share it."""

    __slots__ = ("_alphabet", "_begun", "_pieces", "_wide", "those")

    def __init__(self, those: frozenset[str], alphabet: frozenset[str], pieces: Pieces) -> None:
        self.those = those
        self._alphabet = alphabet
        self._pieces = pieces
        self._wide = sorted(letter for letter in those if letter > "\x7f")
        self._begun: dict[bytes, bool] = {}

    def stand_in(self, character: str) -> str | None:
        """What the library is to be told instead of `character`: itself, `OTHER`, or nothing where it has no place."""
        if character in self.those:
            return character
        return OTHER if OTHER in self.those and character not in self._alphabet else None

    def begin(self, begun: bytes) -> bool:
        """Whether some of them begins with the bytes `begun` and tokens spell it to its end."""
        if not begun or not self._wide:
            return not begun
        known = self._begun.get(begun)
        if known is None:
            known = self._begun[begun] = self._search(begun)
        return known

    def cut(self, tokens: Iterable[tuple[int, bytes]]) -> list[int]:
        """Which of `tokens`, each with the first bytes of a character, may come next."""
        return [token for token, rest in tokens if self.begin(rest)] if self._wide else []

    def _search(self, begun: bytes) -> bool:
        """Only the letters that begin so are tried: a class of letters can have tens of thousands."""
        low, high = reach(begun)
        first, last = bisect_left(self._wide, low, key=ord), bisect_right(self._wide, high, key=ord)
        if any(self._pieces.completes(begun, letter) for letter in self._wide[first:last]):
            return True
        return OTHER in self.those and any(letter not in self._alphabet for letter in self._pieces.endings(begun))


class LetterSets:
    """Makes one `Letters` for each set."""

    def __init__(self, alphabet: str, pieces: Pieces) -> None:
        self._alphabet = frozenset(alphabet)
        self._pieces = pieces
        self.made_bytes = 0
        """What all sets that were ever made take."""
        self._known: dict[frozenset[str], Letters] = {}
        self._read: dict[tuple[str, str], Letters] = {}

    def of(self, characters: str, without: str = "") -> Letters:
        """The set of `characters`, which the library gives in any order, but for those in `without`."""
        known = self._read.get((characters, without))
        if known is None:
            those = frozenset(characters) - frozenset(without)
            known = self._known.get(those) or self._new(those)
            self._known[those] = self._read[characters, without] = known
        return known

    def _new(self, those: frozenset[str]) -> Letters:
        self.made_bytes += LETTER_BYTES * len(those)
        return Letters(those, self._alphabet, self._pieces)

    def forget(self) -> None:
        """Drop all sets."""
        self._known.clear()
        self._read.clear()
