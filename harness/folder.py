"""The folder of a run: manifest, examples, records. A killed run goes on in it with exactly what is missing."""

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness import manifest as manifests
from harness.errors import HarnessError
from harness.exchange import Question
from harness.manifest import Manifest
from harness.record import Example, Journal, Record, read_slim

RECORDS, WARM_UP, EXAMPLES, MANIFEST = "records.jsonl", "warmup.jsonl", "examples.jsonl", "manifest.json"


class RunFolder(msgspec.Struct, frozen=True):
    """An opened folder: `session` numbers this process among those of the run."""

    path: Path
    session: int

    def done(self) -> frozenset[tuple[str, str]]:
        """The (arm, example) pairs that have a whole record."""
        records = self.path / RECORDS
        return frozenset((r.arm, r.example) for r in read_slim(records)) if records.exists() else frozenset()

    def journal(self, name: str) -> Journal:
        return Journal(self.path / name)


def open_folder(path: Path, manifest: Manifest, asked: Sequence[Question]) -> RunFolder:
    """Start a run in `path`, or go on with the one in it. Raises `ResumeError` where that is another one."""
    file = path / MANIFEST
    before = manifests.check_resume(file, manifest.identity)
    earlier = before.sessions if before is not None else ()
    sessions = (*earlier, manifests.session(time.time()))
    manifests.write(file, msgspec.structs.replace(manifest, sessions=sessions))
    if before is None:
        _write_examples(path / EXAMPLES, asked)
    return RunFolder(path, len(earlier))


def keep(journal: Journal, record: Record) -> None:
    """Append a record; a full disk is said in words that tell how to go on."""
    try:
        journal.write(record)
    except OSError as error:
        raise HarnessError(
            f"a record could not be written: {error.strerror}; every record before it is whole",
            "room on the disk",
            "make room and repeat the command with folder= set to this run's folder: it goes on where it stopped",
        ) from error


def _write_examples(path: Path, asked: Sequence[Question]) -> None:
    lines = (Example(q.row.id, q.row.cluster, q.prompt.text, q.prompt.ids, q.row.gold, q.prompt.notes) for q in asked)
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
