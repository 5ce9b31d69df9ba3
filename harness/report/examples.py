"""The examples that the report shows: what was asked, what each arm said, and what the mask did to each token."""

from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path

import msgspec

from harness.record import Part, Record
from harness.report import numbers, visible
from harness.report.interest import Chosen, Kind, Sighting
from harness.report.palette import Look
from harness.report.sources import Sources
from harness.report.token_view import TokenView, token_views
from harness.report.tokens import TokenTexts
from harness.request import Completion

PROMPT = 4000
ANSWER = 2000
LIKELIEST = 3
TOKENS = 64
"""Tokens of a section that are shown; the rest is counted."""
RIGHT = {True: "right", False: "wrong", None: "not judged"}


class SectionView(msgspec.Struct, frozen=True):
    """One generated section: its tokens with what the mask did, or the text alone where nothing masked it."""

    name: str
    constrained: bool
    text: str
    tokens: tuple[TokenView, ...]
    more: int


class AnswerView(msgspec.Struct, frozen=True):
    """What one arm made of the example."""

    look: Look
    outcome: str
    right: str
    text: str
    reason: str
    confidences: tuple[tuple[str, str], ...]
    flags: tuple[str, ...]
    sections: tuple[SectionView, ...]

    @property
    def mark(self) -> str:
        """The judgement in a few signs: `✓ right`, `✗ wrong`, `✗ invalid`."""
        if self.outcome != "valid":
            return f"✗ {self.outcome}"
        return {"right": "✓ right", "wrong": "✗ wrong"}.get(self.right, self.right)


class ExampleView(msgspec.Struct, frozen=True):
    """One example as the browser shows it."""

    id: str
    kinds: tuple[Kind, ...]
    prompt: str
    gold: str
    notes: tuple[str, ...]
    answers: tuple[AnswerView, ...]

    @property
    def off(self) -> tuple[str, ...]:
        """The letters of the arms that were wrong or not valid."""
        return tuple(one.look.letter for one in self.answers if one.mark.startswith("✗"))


class Asked(msgspec.Struct, frozen=True):
    """The part of a line of `examples.jsonl` that is shown."""

    id: str
    prompt: str
    notes: tuple[str, ...] = ()


def views(
    sources: Sources, chosen: Chosen, sightings: Mapping[str, Sighting], looks: Mapping[str, Look], texts: TokenTexts
) -> list[ExampleView]:
    """The chosen examples, their whole records read from their places. Where runs are compared, prompts are those of
    the first run that has the example."""
    wanted = frozenset(chosen.ids)
    asked: dict[str, Asked] = {}
    for source in reversed(sources.all):
        asked |= _asked(source.folder / "examples.jsonl", wanted)
    return [
        _view(id, sightings[id].kinds, asked.get(id), sources.records(sightings[id].places), looks, texts)
        for id in chosen.ids
    ]


def _asked(path: Path, wanted: Set[str]) -> dict[str, Asked]:
    decoder = msgspec.json.Decoder(Asked)
    with path.open("rb") as file:
        lines = (decoder.decode(line) for line in file if line.endswith(b"\n"))
        return {one.id: one for one in lines if one.id in wanted}


def _view(
    id: str,
    kinds: tuple[Kind, ...],
    asked: Asked | None,
    records: Sequence[Record],
    looks: Mapping[str, Look],
    texts: TokenTexts,
) -> ExampleView:
    ordered = sorted(records, key=lambda record: looks[record.arm].place)
    return ExampleView(
        id=visible.readable(id, 200),
        kinds=kinds,
        prompt=visible.readable(asked.prompt, PROMPT) if asked else "(not in examples.jsonl)",
        gold=_gold(records[0].gold),
        notes=asked.notes if asked else (),
        answers=tuple(_answer(record, looks[record.arm], texts) for record in ordered),
    )


def _gold(gold: object) -> str:
    return "none (unlabelled)" if gold is None else visible.value(gold, ANSWER)


def _answer(record: Record, look: Look, texts: TokenTexts) -> AnswerView:
    partial = record.score if record.score not in (0.0, 1.0) else None
    confidences = (("label", record.label_confidence), ("path", record.path_confidence), ("raw", record.raw_confidence))
    measures = (("score", partial), *confidences, ("mass kept", record.mass))
    return AnswerView(
        look=look,
        outcome=record.outcome.replace("_", " "),
        right=RIGHT[record.right],
        text=visible.readable(record.text, ANSWER),
        reason=visible.readable(record.reason, 400),
        confidences=(
            *((name, numbers.probability(value)) for name, value in measures if value is not None),
            *_likeliest(record.labels),
        ),
        flags=tuple(visible.readable(flag, 200) for flag in record.flags),
        sections=tuple(
            _section(part, part.result, texts) for part in record.parts if isinstance(part.result, Completion)
        ),
    )


def _likeliest(labels: Mapping[str, float] | None) -> Iterator[tuple[str, str]]:
    """The labels that the model itself found most probable here."""
    if labels:
        ranked = sorted(labels.items(), key=lambda item: -item[1])[:LIKELIEST]
        yield "labels", " · ".join(f"{visible.readable(name, 60)} {numbers.probability(p)}" for name, p in ranked)


def _section(part: Part, completion: Completion, texts: TokenTexts) -> SectionView:
    shown = token_views(completion, texts, TOKENS) if part.constrained and completion.trace else ()
    return SectionView(
        name=visible.readable(part.section, 80),
        constrained=part.constrained,
        text=visible.readable(completion.text, ANSWER),
        tokens=shown,
        more=len(completion.token_ids) - len(shown) if shown else 0,
    )
