"""The run folders behind a report, and the places of records in them, so that a few can be read again whole.

A report over one run shows its arms by their names; one over several shows them as `run:arm`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from harness.metrics.whole import Line
from harness.record import Record


class Source(msgspec.Struct, frozen=True):
    """A run folder; `name` is empty where it is the only one."""

    folder: Path
    name: str = ""

    def arm(self, arm: str) -> str:
        """The name of one of its arms in the report."""
        return f"{self.name}:{arm}" if self.name else arm


class Sources:
    """Run folders in order. A place is one number: the offset of a line and the run it is in."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.all = tuple(sources)

    def lines(self) -> Iterator[tuple[int, Source, bytes]]:
        """Every whole line of records with its place, in file order. A torn last line (a killed run) is left out."""
        for number, source in enumerate(self.all):
            offset = 0
            with (source.folder / "records.jsonl").open("rb") as file:
                for line in file:
                    if line.endswith(b"\n"):
                        yield offset * len(self.all) + number, source, line
                    offset += len(line)

    def whole_lines(self) -> Iterator[Line]:
        """The same lines as the metrics take them: what an arm of theirs is called, and the line."""
        return ((source.arm, line) for _, source, line in self.lines())

    def records(self, places: Sequence[int]) -> list[Record]:
        """The whole records at these places, their arms named as in the report."""
        return [self._record(*divmod(place, len(self.all))) for place in places]

    def _record(self, offset: int, number: int) -> Record:
        source = self.all[number]
        with (source.folder / "records.jsonl").open("rb") as file:
            file.seek(offset)
            record = msgspec.json.decode(file.readline(), type=Record)
        return msgspec.structs.replace(record, arm=source.arm(record.arm)) if source.name else record
