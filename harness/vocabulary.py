"""The tokens of a model as bytes: all that a mask engine needs to know about a tokenizer."""

import hashlib
from collections.abc import Sequence

import msgspec


class Vocabulary(msgspec.Struct, frozen=True):
    """`tokens[i]` is what token `i` adds to the text, as bytes; None for special and unused tokens, which never stand
    for text. `stop_ids` end an answer. `width` is the number of logits of the model, at least `len(tokens)`: ids past
    the end of `tokens` are padding and never allowed."""

    tokens: tuple[bytes | None, ...]
    stop_ids: tuple[int, ...]
    width: int

    def __post_init__(self) -> None:
        if self.width < len(self.tokens):
            raise ValueError(f"width {self.width} is smaller than the tokenizer's {len(self.tokens)} tokens")
        if not self.stop_ids or not all(0 <= stop < self.width for stop in self.stop_ids):
            raise ValueError(f"stop ids {self.stop_ids} are not ids below {self.width}")

    def bytes_of(self, ids: Sequence[int]) -> bytes:
        """The bytes that `ids` spell; special tokens and padding spell nothing."""
        return b"".join(self.tokens[i] or b"" for i in ids if i < len(self.tokens))

    def text(self, ids: Sequence[int]) -> str:
        """The text that `ids` spell; a character that is cut in the middle shows as U+FFFD."""
        return self.bytes_of(ids).decode("utf-8", errors="replace")

    def fingerprint(self) -> str:
        """Equal for equal vocabularies (SHA-256, 16 hex digits)."""
        return hashlib.sha256(msgspec.msgpack.encode(self)).hexdigest()[:16]
