"""Files of a report: whole or not there, and where one cannot be written, said so that a reader knows what to do."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from harness.folder import writing

AGAIN = "make room, or name a folder that may be written, and repeat the command: reports are made from records alone"


@contextmanager
def drafted(path: Path) -> Iterator[Path]:
    """A draft beside `path` that takes its place once all of it is written; nothing is left of one that is not. Raises
    `HarnessError` where it cannot be."""
    draft = path.with_name(path.name + ".tmp")
    with writing(path.name, AGAIN):
        try:
            yield draft
            draft.replace(path)
        except OSError:
            if draft.is_file():
                draft.unlink()
            raise


def write_text(path: Path, content: str) -> None:
    """Write a file whole or not at all."""
    with drafted(path) as draft:
        draft.write_text(content, encoding="utf-8")


def write_json(path: Path, value: msgspec.Struct) -> None:
    """Write a value as JSON that people can read, whole or not at all."""
    write_text(path, msgspec.json.format(msgspec.json.encode(value), indent=1).decode())


def make_folder(path: Path) -> None:
    """Make a folder for reports where there is none."""
    with writing(f"the folder {path.name}", AGAIN):
        path.mkdir(parents=True, exist_ok=True)
