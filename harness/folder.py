"""The folder of a run: manifest, examples, records. A killed run goes on in it with exactly what is missing."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from harness import manifest as manifests
from harness.errors import HarnessError
from harness.exchange import Question
from harness.manifest import Manifest
from harness.record import Example, Journal, read_slim

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
        """Where lines of that file are appended."""
        with writing(name):
            return Journal(self.path / name)


def open_folder(path: Path, manifest: Manifest, asked: Sequence[Question]) -> RunFolder:
    """Start a run in `path`, or go on with the one in it. Raises `ResumeError` where that is another one."""
    file = path / MANIFEST
    before = manifests.check_resume(file, manifest)
    earlier = before.sessions if before is not None else ()
    sessions = (*earlier, manifests.session(time.time()))
    with writing("the run folder"):
        if before is None:
            _write_examples(path / EXAMPLES, asked)
        manifests.write(file, msgspec.structs.replace(manifest, sessions=sessions))
    return RunFolder(path, len(earlier))


GO_ON = "make room and repeat the command with folder= set to this run's folder: it goes on where it stopped"


@contextmanager
def writing(what: str, fix: str = GO_ON) -> Iterator[None]:
    """What goes wrong with writing a file (a full disk, say) in words that tell how to go on."""
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise HarnessError(
            f"{what} could not be written: {error.strerror or error}{where}; every record before that is whole",
            "a folder that may be written, with room in it",
            fix,
        ) from error


def keep(journal: Journal, record: msgspec.Struct) -> None:
    """Append a record. Raises `HarnessError` where it cannot be written; nothing of it is left behind then."""
    with writing("a record"):
        journal.write(record)


def _write_examples(path: Path, asked: Sequence[Question]) -> None:
    lines = (Example(q.row.id, q.row.cluster, q.prompt.text, q.prompt.ids, q.row.gold, q.prompt.notes) for q in asked)
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
