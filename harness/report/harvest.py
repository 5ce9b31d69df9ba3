"""One pass over the records that feeds everything a report is made of: the metrics, the Parquet file, the reasons of
failures, and where the records of each example stand.

A record is decoded once, without its traces; memory grows by little more than a hundred bytes a record.
"""

from collections import Counter
from collections.abc import Callable, Iterator

import msgspec

from harness.record import Outcome, Slim
from harness.report.interest import Sighting, sighting
from harness.report.sources import Sources
from harness.request import Cost

REASONS = 2000
"""How many different reasons are kept apart; a run with more of them has messages that never repeat."""
LONGEST = 200


class _Cost(Cost, frozen=True, gc=False):
    """Cycles cannot be made of these, and watching a million of them for cycles takes longer than decoding them."""


class Line(Slim, frozen=True, kw_only=True, gc=False):
    """A record without its traces."""

    cost: _Cost
    text: str
    answer: msgspec.Raw
    gold: msgspec.Raw
    reason: str


class Harvest:
    """Collects while the records pass by; `keep` gets each of them (for the Parquet file)."""

    def __init__(self, sources: Sources, keep: Callable[[Line], None] = lambda _: None) -> None:
        self._sources, self._keep = sources, keep
        self.sightings: dict[str, Sighting] = {}
        self.reasons: Counter[tuple[str, Outcome, str]] = Counter()

    def lines(self) -> Iterator[Slim]:
        """Every record once, its arm named as in the report."""
        decoder = msgspec.json.Decoder(Line)
        for place, source, raw in self._sources.lines():
            line = decoder.decode(raw)
            if source.name:
                line = msgspec.structs.replace(line, arm=source.arm(line.arm))
            self._take(line, place)
            yield line

    def _take(self, line: Line, place: int) -> None:
        self._keep(line)
        text = hash(line.text)
        if (seen := self.sightings.get(line.example)) is None:
            self.sightings[line.example] = sighting(place, text, line.right, line.outcome)
        else:
            seen.add(place, text, line.right, line.outcome)
        if line.outcome in ("failed", "unsupported"):
            self._count(line)

    def _count(self, line: Line) -> None:
        key = (line.arm, line.outcome, line.reason[:LONGEST])
        if key in self.reasons or len(self.reasons) < REASONS:
            self.reasons[key] += 1
        else:
            self.reasons[line.arm, line.outcome, "other reasons"] += 1
