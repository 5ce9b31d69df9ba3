"""A name for the weights and tokenizer in a folder: equal for equal content, wherever the folder lies."""

import hashlib
from pathlib import Path

import msgspec

from harness.deployments.embedded.weights import cache_folder

_PATTERNS = ("*.safetensors", "tokenizer.json", "tokenizer.model", "vocab.json", "merges.txt")


class _Known(msgspec.Struct, frozen=True):
    """A file's state when it was read, and what was read."""

    size: int
    changed_ns: int
    digest: str


def fingerprint(folder: Path) -> str:
    """SHA-256 (16 hex digits) over the names and contents of the weight and tokenizer files. What was read of a file is
    remembered until its size or time of change differs."""
    whole = hashlib.sha256()
    for file in sorted({file for pattern in _PATTERNS for file in folder.glob(pattern)}):
        whole.update(f"{file.name}\0{_digest(file)}\0".encode())
    return whole.hexdigest()[:16]


def _digest(file: Path) -> str:
    state = file.stat()
    note = _note(file)
    if note.exists():
        known = msgspec.json.decode(note.read_bytes(), type=_Known)
        if (known.size, known.changed_ns) == (state.st_size, state.st_mtime_ns):
            return known.digest
    with file.open("rb") as data:
        digest = hashlib.file_digest(data, "sha256").hexdigest()
    _remember(note, _Known(state.st_size, state.st_mtime_ns, digest))
    return digest


def _note(file: Path) -> Path:
    place = hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:32]
    return cache_folder() / "digests" / f"{place}.json"


def _remember(note: Path, known: _Known) -> None:
    note.parent.mkdir(parents=True, exist_ok=True)
    half = note.with_suffix(f".{id(known)}")
    half.write_bytes(msgspec.json.encode(known))
    half.replace(note)  # whole or not at all, though several processes write it
