"""The tokens of one vocabulary as lm-format-enforcer needs them: a tree of characters, and what a JSON string may hold.

The library builds its table by decoding every token through transformers, which does not import under transformers 5, and
its tokens are text: a token that holds a part of a character turns into U+FFFD, so that a split character can be neither
followed nor demanded. Here the table comes from the bytes of `harness.vocabulary`: whole characters stand in the tree as in
the library's, and the bytes of a split character hang from the node where the character begins.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from harness.vocabulary import Vocabulary

OTHER = "\ufffd"
"""Stands, in the alphabet, for every character that is in no token and not in the constraint."""


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
    """Everything that is computed once a vocabulary; shared by all automata. Only `after` grows, by one entry for each
    beginning of a character that is met."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.stop_ids = frozenset(vocabulary.stop_ids)
        self.pieces = tuple(_pieces(vocabulary, self.stop_ids, b""))
        self.root = _tree(self.pieces)
        characters = {character for piece in self.pieces if not piece.rest for character in piece.text}
        self.alphabet = "".join(sorted(characters | {OTHER}))
        self._after: dict[bytes, tuple[Piece, ...]] = {}
        self._free = [(piece, len(piece.text) + bool(piece.rest)) for piece in self.pieces if _free(piece)]

    def free(self, least: int, most: int) -> list[int]:
        """The tokens that may go on with a JSON string of which at most `most` characters are left, and that must not
        end before `least` more: the library's shortcut."""
        return [
            piece.token
            for piece, length in self._free
            if (least + 1 <= length <= most + 1 if piece.text.endswith('"') and not piece.rest else length <= most)
        ]

    def after(self, begun: bytes) -> tuple[Piece, ...]:
        """The tokens that go on with a character of which `begun` are the first bytes; `text` starts with it."""
        if begun not in self._after:
            self._after[begun] = tuple(_pieces(self.vocabulary, self.stop_ids, begun))
        return self._after[begun]


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


def _free(piece: Piece) -> bool:
    return free_text(piece.text) if not piece.rest else free_text(piece.text + OTHER)


def _pieces(vocabulary: Vocabulary, stop_ids: frozenset[int], begun: bytes) -> Iterator[Piece]:
    for token, data in enumerate(vocabulary.tokens):
        if not data or token in stop_ids or (begun and not 0x80 <= data[0] < 0xC0):
            continue
        if (text := read(begun + data)) is not None:
            yield Piece(token, *text)


def _tree(pieces: tuple[Piece, ...]) -> Node:
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
