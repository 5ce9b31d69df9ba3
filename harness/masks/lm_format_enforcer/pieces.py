"""Tokens read as text: whole characters, and the first bytes of one more.

The library decodes every token by itself, so that one which holds a part of a character turns into U+FFFD and a split
character can be neither demanded nor followed. Here the bytes of `harness.vocabulary` are read.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from harness.vocabulary import Vocabulary

BEGUN = 4096
"""Beginnings of characters that are remembered; all of Unicode has some thousands."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A token as text. `rest` are the first bytes of one more character (empty for most tokens)."""

    token: int
    text: str
    rest: bytes


class Pieces:
    """The tokens of one vocabulary that spell text; a beginning that no token goes on with spells none."""

    def __init__(self, vocabulary: Vocabulary, spelling: frozenset[int]) -> None:
        tokens = [(i, vocabulary.tokens[i] or b"") for i in sorted(spelling)]
        self._inner = tuple((i, data) for i, data in tokens if _run(data))
        self._middle = frozenset(data for _, data in self._inner)
        self._last = frozenset(data[: _run(data)] for data in self._middle)
        self.after = lru_cache(maxsize=BEGUN)(self._after)
        self._spellable = lru_cache(maxsize=BEGUN)(self._has_ending)
        self.all = tuple(self._good(b"", tokens))

    def _after(self, begun: bytes) -> tuple[Piece, ...]:
        """The tokens that go on with a character of which `begun` are the first bytes; their `text` starts with it."""
        return tuple(self._good(begun, self._inner))

    def endings(self, begun: bytes) -> Iterator[str]:
        """The characters that begin with the bytes `begun` and that tokens spell to their end."""
        for _, data in self._inner:
            text, rest = read(begun + data) or ("", b"")
            if text and not rest:
                yield text[0]
            elif rest and not text:
                yield from self.endings(rest)

    def completes(self, begun: bytes, character: str) -> bool:
        """Whether `character` begins with the bytes `begun` and tokens spell it to its end."""
        data = character.encode()
        return data.startswith(begun) and self._spells(data[len(begun) :])

    def _spells(self, data: bytes) -> bool:
        sizes = range(1, len(data))
        return data in self._last or any(data[:n] in self._middle and self._spells(data[n:]) for n in sizes)

    def _good(self, begun: bytes, tokens: "tuple[tuple[int, bytes], ...] | list[tuple[int, bytes]]") -> Iterator[Piece]:
        for i, data in tokens:
            text = read(begun + data)
            if text is not None and (not text[1] or self._spellable(text[1])):
                yield Piece(i, *text)

    def _has_ending(self, begun: bytes) -> bool:
        return any(True for _ in self.endings(begun))


def read(data: bytes) -> tuple[str, bytes] | None:
    """`data` as whole characters and the first bytes of one more; None where no text has such bytes."""
    try:
        return data.decode(), b""
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":
            return None
        return data[: error.start].decode(), data[error.start :]


def _run(data: bytes) -> int:
    """How many bytes `data` begins with that go on with a character."""
    return next((i for i, byte in enumerate(data) if not 0x80 <= byte < 0xC0), len(data))
