"""What the tokens of a run spell: `tokens.json` of its folder, a list of texts by token id (null for special tokens).

Records hold ids, and a report is made without the model, so a run writes the texts of its vocabulary once. A token
whose text is not known is shown by its number.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.report import visible
from harness.vocabulary import Vocabulary

FILE = "tokens.json"


class TokenTexts(msgspec.Struct, frozen=True):
    """The texts of the tokens of a run, by id, and the ids that end an answer."""

    texts: Sequence[str | None]
    stop_ids: tuple[int, ...] = ()

    def show(self, token: int | None) -> str:
        """The token as a reader sees it, its spaces drawn; `⟨end⟩` for a stop token, `#7` for one without text."""
        if token is None:
            return "–"
        if token in self.stop_ids:
            return "⟨end⟩"
        text = self.texts[token] if 0 <= token < len(self.texts) else None
        return visible.token(text) if text else f"#{token}"


def write(folder: Path, vocabulary: Vocabulary) -> None:
    """Write the texts of a vocabulary into a run folder. Bytes that are a part of a character show as `\\xe2`."""
    texts = [None if token is None else token.decode("utf-8", "backslashreplace") for token in vocabulary.tokens]
    (folder / FILE).write_bytes(msgspec.json.encode(texts))


def read(folder: Path, stop_ids: tuple[int, ...]) -> TokenTexts:
    """The texts of the tokens of a run folder; none where it has no such file."""
    path = folder / FILE
    texts = msgspec.json.decode(path.read_bytes(), type=list[str | None]) if path.exists() else []
    return TokenTexts(texts, stop_ids)
