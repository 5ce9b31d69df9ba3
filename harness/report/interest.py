"""Which examples a reader should see: those on which arms differ, or an answer is not valid.

A run can have a million records, so what is kept of an example is small, and its whole records are read again from
their places in the file only for the few that are shown.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from harness.record import Outcome

Kind = Literal["verdicts differ", "answers differ", "not valid"]
KINDS: tuple[Kind, ...] = ("verdicts differ", "answers differ", "not valid")


class Sighting(msgspec.Struct, gc=False):
    """What was seen of one example so far: where its records stand in the file, and what they disagree on."""

    places: tuple[int, ...]
    first_text: int
    first_right: bool | None
    texts_differ: bool = False
    rights_differ: bool = False
    invalid: bool = False

    def add(self, place: int, text: int, right: bool | None, outcome: Outcome) -> None:
        """Take one more record of the example."""
        self.places += (place,)
        self.texts_differ |= text != self.first_text
        self.rights_differ |= right != self.first_right
        self.invalid |= outcome != "valid"

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Why the example is of interest; empty where it is not."""
        found: list[Kind] = []
        if self.rights_differ:
            found.append("verdicts differ")
        if self.texts_differ:
            found.append("answers differ")
        if self.invalid:
            found.append("not valid")
        return tuple(found)


class Chosen(msgspec.Struct, frozen=True):
    """The examples to show in order, and of how many interesting ones of how many they were chosen."""

    ids: tuple[str, ...]
    interesting: int
    examples: int


def sighting(place: int, text: int, right: bool | None, outcome: Outcome) -> Sighting:
    """The first record of an example."""
    return Sighting((place,), text, right, invalid=outcome != "valid")


def choose(sightings: Mapping[str, Sighting], limit: int) -> Chosen:
    """Up to `limit` examples, taken in turn from each sort of interest so that no sort crowds out another."""
    queues: dict[tuple[Kind, ...], list[str]] = {}
    for example, seen in sightings.items():
        if seen.kinds:
            queues.setdefault(seen.kinds, []).append(example)
    ordered = [queues[kinds] for kinds in sorted(queues, key=lambda kinds: (-len(kinds), KINDS.index(kinds[0])))]
    picked = list(_in_turn(ordered))[:limit]
    return Chosen(tuple(picked), sum(map(len, ordered)), len(sightings))


def _in_turn(queues: Iterable[list[str]]) -> Iterable[str]:
    waiting = [iter(queue) for queue in queues]
    while waiting:
        alive = []
        for queue in waiting:
            if (example := next(queue, None)) is not None:
                yield example
                alive.append(queue)
        waiting = alive
