"""The vocabulary of a model's tokenizer: what each token adds to the text, as bytes.

Two styles are read, which together cover the tokenizers that language models have. Byte-level tokenizers (GPT-2 and its
heirs) spell each byte with one printable character. Sentencepiece-style ones write a space as U+2581 and a byte without
a token of its own as `<0xNN>`. The tokenizer's decoder says which style it is; any other is refused, because a wrong
byte table gives wrong masks without a word.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from harness.errors import DataError
from harness.vocabulary import Vocabulary

Style = Literal["byte_level", "sentencepiece", "sentencepiece_bytes"]
"""`sentencepiece_bytes` reads `<0xNN>` as a byte; without that fallback in its decoder it is literal text."""

MARKER = "\u2581"
BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def vocabulary(tokenizer: object, width: int, stop_ids: Sequence[int]) -> Vocabulary:
    """The vocabulary of `tokenizer`: a folder with a `tokenizer.json`, that file, a `tokenizers.Tokenizer`, or a fast
    tokenizer of transformers. `width` is the number of logits of the model, `stop_ids` end an answer. Special tokens,
    the unknown token, the stop tokens and ids that name nothing stand for no text. Raises `DataError`."""
    described = _describe(tokenizer)
    style = _style(described)
    pieces = dict(_pieces(described))
    silent = _silent(described) | set(stop_ids)
    table = [
        None if i in silent or i not in pieces else _spell(pieces[i], style) or None for i in range(max(pieces) + 1)
    ]
    return Vocabulary(tuple(table), tuple(stop_ids), width)


def _describe(tokenizer: object) -> dict[str, Any]:
    """The tokenizer in the words of `tokenizer.json`."""
    if isinstance(tokenizer, str | Path):
        return _read(Path(tokenizer))
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(backend, "to_str"):
        raise DataError(
            f"tokenizer: {type(tokenizer).__name__} is not a fast tokenizer", "one with a tokenizer.json", "convert it"
        )
    described: dict[str, Any] = json.loads(backend.to_str())
    return described


def _read(path: Path) -> dict[str, Any]:
    file = path / "tokenizer.json" if path.is_dir() else path
    try:
        described: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"tokenizer: cannot read {file}: {error}", "a tokenizer.json", "name its folder") from None
    except json.JSONDecodeError as error:
        raise DataError(f"tokenizer: {file} is not JSON: {error}", "a tokenizer.json", "save it anew") from None
    return described


def _style(described: dict[str, Any]) -> Style:
    decoders = list(_decoders(described.get("decoder")))
    kinds = {decoder["type"] for decoder in decoders}
    marks = any(
        decoder["type"] == "Metaspace"
        or (decoder["type"] == "Replace" and decoder["pattern"] == {"String": MARKER} and decoder["content"] == " ")
        for decoder in decoders
    )
    if kinds == {"ByteLevel"}:
        return "byte_level"
    if marks and kinds <= {"Metaspace", "Replace", "ByteFallback", "Fuse", "Strip"}:
        return "sentencepiece_bytes" if "ByteFallback" in kinds else "sentencepiece"
    raise DataError(
        f"tokenizer: its decoder is {sorted(kinds) or 'missing'}",
        "a byte-level or a sentencepiece-style tokenizer",
        "use another model; the bytes of these tokens are not known",
    )


def _decoders(decoder: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    if decoder is None:
        return
    if decoder["type"] == "Sequence":
        for part in decoder["decoders"]:
            yield from _decoders(part)
    else:
        yield decoder


def _pieces(described: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """Each id with its token as the tokenizer writes it; added tokens win, as they do when decoding."""
    known = described["model"]["vocab"]
    if isinstance(known, dict):
        yield from ((i, piece) for piece, i in known.items())
    else:
        yield from ((i, entry[0]) for i, entry in enumerate(known))
    yield from ((token["id"], token["content"]) for token in described.get("added_tokens", ()))


def _silent(described: dict[str, Any]) -> set[int]:
    """Special tokens and the unknown token."""
    model = described["model"]
    special = {token["id"] for token in described.get("added_tokens", ()) if token["special"]}
    by_name = isinstance(model["vocab"], dict)
    unknown = model["vocab"].get(model.get("unk_token")) if by_name else model.get("unk_id")
    return special if unknown is None else special | {unknown}


def _spell(piece: str, style: Style) -> bytes:
    match style:
        case "byte_level":
            if all(character in _BYTES for character in piece):
                return bytes(_BYTES[character] for character in piece)
            return piece.encode()  # an added token that was never cut into bytes
        case "sentencepiece_bytes" if byte := BYTE.fullmatch(piece):
            return bytes([int(byte[1], 16)])
        case "sentencepiece" | "sentencepiece_bytes":
            return piece.replace(MARKER, " ").encode()


def _byte_characters() -> dict[str, int]:
    """Which byte each printable character stands for in byte-level tokenizers (GPT-2's table): printable bytes for
    themselves, the others, in order, for the characters from U+0100 on."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(0x100 + i): byte for i, byte in enumerate(rest)}


_BYTES = _byte_characters()
