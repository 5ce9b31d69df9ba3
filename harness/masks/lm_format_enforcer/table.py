"""The tokens of one vocabulary as lm-format-enforcer needs them: a tree of characters, and what a JSON string may hold.

The library makes its table by decoding every token through transformers, which does not import under transformers 5, and
its tokens are text: one that holds a part of a character turns into U+FFFD, so that a split character can be neither
demanded nor followed. Here the table comes from the bytes of `harness.vocabulary`: whole characters stand in the tree as
in the library's, and the first bytes of a split character hang from the node where the character begins.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from harness.mask import Mask, allow, empty_mask
from harness.masks.stopping import Ends
from harness.vocabulary import Vocabulary

OTHER = "\ufffd"
"""Stands, in the library's alphabet, for every character that is neither in a token nor in the constraint."""

BEGUN = 4096
"""Beginnings of characters that are remembered; all of Unicode has some thousands."""

LENGTHS = 256
"""String masks kept a vocabulary, one for each pair of limits that makes a difference (usually under a hundred)."""


@dataclass(slots=True)
class Node:
    """A place in the tree. `tokens` end here; `cut` end here with the first bytes of one more character."""

    tokens: list[int] = field(default_factory=list)
    children: "dict[str, Node]" = field(default_factory=dict)
    cut: list[tuple[int, bytes]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Piece:
    """A token read as text: whole characters, and the first bytes of one more (empty for most tokens)."""

    token: int
    text: str
    rest: bytes


class Table:
    """Everything that is computed once a vocabulary; shared by all automata."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.ends = Ends(vocabulary)
        spelling = sorted(self.ends.spelling)
        inner = [(i, data) for i in spelling if 0x80 <= (data := vocabulary.tokens[i] or b"")[0] < 0xC0]
        self._inner = tuple(inner)
        self._middle = frozenset(data for _, data in inner)
        self._last = frozenset(data[: _run(data)] for _, data in inner)
        self.after = lru_cache(maxsize=BEGUN)(self._after)
        self.spellable = lru_cache(maxsize=BEGUN)(self._spellable)
        pieces = (_piece(i, vocabulary.tokens[i] or b"") for i in spelling)
        self.pieces = tuple(piece for piece in pieces if piece is not None and self._ends_well(piece))
        self.root = _tree(self.pieces)
        self.alphabet = "".join(sorted({OTHER}.union(*(piece.text for piece in self.pieces))))
        self._strings = _Strings(self.pieces)
        self.string_mask = lru_cache(maxsize=LENGTHS)(self._string_mask)

    def _after(self, begun: bytes) -> tuple[Piece, ...]:
        """The tokens that go on with a character of which `begun` are the first bytes; their `text` starts with it."""
        pieces = (_piece(i, begun + data) for i, data in self._inner)
        return tuple(piece for piece in pieces if piece is not None and self._ends_well(piece))

    def _ends_well(self, piece: Piece) -> bool:
        return not piece.rest or self.spellable(piece.rest)

    def _spellable(self, begun: bytes) -> bool:
        return any(True for _ in self.endings(begun))

    def endings(self, begun: bytes) -> Iterator[str]:
        """The characters that begin with the bytes `begun` and that tokens spell to their end."""
        for token, data in self._inner:
            piece = _piece(token, begun + data)
            if piece is None:
                continue
            if piece.text and not piece.rest:
                yield piece.text[0]
            elif not piece.text:
                yield from self.endings(piece.rest)

    def completes(self, begun: bytes, character: str) -> bool:
        """Whether `character` begins with the bytes `begun` and tokens spell it to its end."""
        data = character.encode()
        return data.startswith(begun) and self._spells(data[len(begun) :])

    def _spells(self, data: bytes) -> bool:
        return data in self._last or any(
            data[:size] in self._middle and self._spells(data[size:]) for size in range(1, len(data))
        )

    def _string_mask(self, least: int, most: int) -> Mask:
        mask = empty_mask(self.vocabulary.width)
        allow(mask, self._strings.tokens(least, most))
        mask.setflags(write=False)
        return mask

    def free(self, least: int, most: int) -> Mask:
        """The library's shortcut: the tokens that may go on with a JSON string which may hold `most` more characters
        and must hold `least` more before it ends (0 or more both)."""
        longest = self._strings.longest
        return self.string_mask(min(least, longest + 1), min(most, longest + 1))


class _Strings:
    """The tokens that may stand in a JSON string, by length."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        free = [piece for piece in pieces if free_text(piece.text + OTHER if piece.rest else piece.text)]
        self._ids = np.array([piece.token for piece in free], dtype=np.int64)
        self._lengths = np.array([len(piece.text) + bool(piece.rest) for piece in free], dtype=np.int64)
        self._closing = np.array([piece.text.endswith('"') and not piece.rest for piece in free], dtype=bool)
        self.longest = int(self._lengths.max(initial=0))

    def tokens(self, least: int, most: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        closing = self._closing & (self._lengths > least) & (self._lengths <= most + 1)
        return self._ids[closing | (~self._closing & (self._lengths <= most))]


def read(data: bytes) -> tuple[str, bytes] | None:
    """`data` as whole characters and the first bytes of one more; None where no text has such bytes."""
    try:
        return data.decode(), b""
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":
            return None
        return data[: error.start].decode(), data[error.start :]


def free_text(text: str) -> bool:
    """Whether the library lets a token of this text stand in a JSON string without looking at its characters."""
    if "\\" in text[:-1] or '"' in text[:-1] or "\n" in text or "\r" in text:
        try:
            json.loads(f'"{text}"')
        except json.JSONDecodeError:
            return False
    return bool(text)


def _piece(token: int, data: bytes) -> Piece | None:
    text = read(data)
    return None if text is None else Piece(token, *text)


def _run(data: bytes) -> int:
    """How many bytes `data` begins with that go on with a character."""
    return next((i for i, byte in enumerate(data) if not 0x80 <= byte < 0xC0), len(data))


def _tree(pieces: Iterable[Piece]) -> Node:
    root = Node()
    for piece in pieces:
        node = root
        for character in piece.text:
            node = node.children.setdefault(character, Node())
        if piece.rest:
            node.cut.append((piece.token, piece.rest))
        else:
            node.tokens.append(piece.token)
    return root
