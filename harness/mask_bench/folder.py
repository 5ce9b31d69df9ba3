"""The folder of a benchmark: manifest and records. One that was stopped goes on in it, if it is the same benchmark."""

import hashlib
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from harness import manifest as manifests
from harness.errors import ResumeError
from harness.folder import writing
from harness.mask_bench.config import MasksConfig
from harness.mask_bench.messages import Ready
from harness.mask_bench.rows import Row
from harness.record import whole_bytes

RECORDS, MANIFEST = "records.jsonl", "masks.json"


class Start(NamedTuple):
    """What a benchmark is, once its engines have started."""

    config: MasksConfig
    vocabulary: str
    data: str
    ready: dict[str, Ready]

    def identity(self) -> str:
        """Equal exactly for benchmarks whose rows may stand in one file (SHA-256, 16 hex digits)."""
        config = msgspec.structs.replace(self.config, folder="", data="", first=None, tokenizer="")
        versions = {name: one.version for name, one in self.ready.items()}
        content = msgspec.json.encode([config, self.vocabulary, self.data, versions], order="sorted")
        return hashlib.sha256(content).hexdigest()[:16]


class BenchManifest(msgspec.Struct, frozen=True):
    """As `harness.manifest.Manifest`, for a benchmark. `engines` maps names to library version and set-up seconds."""

    identity: str
    config: MasksConfig
    vocabulary: str
    data_digest: str
    engines: dict[str, Ready]
    versions: dict[str, str]
    machine: dict[str, Any]
    git: dict[str, Any]
    sessions: tuple[dict[str, Any], ...]


def open_folder(folder: Path, start: Start) -> int:
    """Start a benchmark in `folder`, or go on with the one in it; gives the number of this session. Raises
    `ResumeError` where that is another one."""
    with writing("the folder of the benchmark", fix="name another folder with folder="):
        folder.mkdir(parents=True, exist_ok=True)
    file, identity = folder / MANIFEST, start.identity()
    before = read_manifest(folder) if file.exists() else None
    if before is not None and before.identity != identity:
        raise ResumeError(
            f"folder {folder}: it holds another benchmark (identity {before.identity}, now {identity})",
            "the same engines, versions, data, tokenizer and limits as before",
            "give another folder, or repeat the first command (it stands in masks.json)",
        )
    earlier = before.sessions if before is not None else ()
    manifest = BenchManifest(
        identity, start.config, start.vocabulary, start.data, start.ready, manifests.versions(), manifests.machine(),
        manifests.git_state(), (*earlier, manifests.session(time.time())),
    )  # fmt: skip
    with writing(MANIFEST):
        manifests.write(file, manifest)
    return len(earlier)


def read_manifest(folder: Path) -> BenchManifest:
    """The manifest of a benchmark's folder."""
    return msgspec.json.decode((folder / MANIFEST).read_bytes(), type=BenchManifest)


def read_rows(folder: Path) -> tuple[Row, ...]:
    """The whole lines, in file order."""
    path = folder / RECORDS
    if not path.exists():
        return ()
    decoder = msgspec.json.Decoder(Row)
    return tuple(decoder.decode(line) for line in path.read_bytes()[: whole_bytes(path)].splitlines())


def done(folder: Path) -> frozenset[str]:
    """The schemas that have a whole line."""
    return frozenset(row.id for row in read_rows(folder))
