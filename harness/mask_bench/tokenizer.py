"""The tokenizer of a benchmark, read from a folder without loading a model."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from harness.deployments.embedded.weights import DEFAULT_MODEL, default_weights
from harness.errors import DataError
from harness.tokens import vocabulary
from harness.vocabulary import Vocabulary

BEFORE = "\n"
SHOWN = 80


@dataclass(frozen=True)
class Known:
    """A vocabulary, and how texts become its tokens."""

    tokenizer: Tokenizer
    vocabulary: Vocabulary

    def ids(self, text: str) -> tuple[int, ...]:
        """The tokens that spell `text`, as they would behind other text, and the stop token. Raises `DataError` where
        there are none."""
        alone = self._encoded(text)
        ids = alone if self._spell(alone, text) else self._behind(text)
        if not self._spell(ids, text):
            found = f"data: the tokenizer makes {self.vocabulary.text(alone)[:SHOWN]!r} of the text {text[:SHOWN]!r}"
            raise DataError(
                found, "a text that its tokens spell", "leave it out of the data, or take another tokenizer"
            )
        return (*ids, self.vocabulary.stop_ids[0])

    def _encoded(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def _behind(self, text: str) -> list[int]:
        """The tokens of `text` behind a line break: at the start of a text some tokenizers add a space."""
        before, ids = len(self._encoded(BEFORE)), self._encoded(BEFORE + text)
        return ids[before:] if ids[:before] == self._encoded(BEFORE) else ids

    def _spell(self, ids: list[int], text: str) -> bool:
        return self.vocabulary.bytes_of(ids) == text.encode()


def load(name: str) -> Known:
    """The default model's tokenizer, or that of a folder: the number of logits is `vocab_size` of its config.json, the
    stop tokens are `eos_token_id` of its generation_config.json or config.json. Raises `DataError`."""
    folder = default_weights() if name == DEFAULT_MODEL else Path(name)
    config = _read(folder / "config.json")
    generation = folder / "generation_config.json"
    named = (_read(generation) if generation.exists() else {}).get("eos_token_id", config.get("eos_token_id"))
    stops: list[Any] = named if isinstance(named, list) else [named]
    width = config.get("vocab_size", config.get("text_config", {}).get("vocab_size"))
    if width is None or None in stops:
        raise DataError(f"tokenizer: {folder} lacks vocab_size or eos_token_id", "both in config.json", "add them")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.encode_special_tokens = True  # special tokens in a text stay text
    return Known(tokenizer, vocabulary(folder, int(width), tuple(stops)))


def _read(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise DataError(f"tokenizer: cannot read {path}: {error}", "a model's folder", "mend the path") from None
    return found
