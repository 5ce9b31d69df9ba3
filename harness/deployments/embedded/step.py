"""One step of the loop: masks start, the model runs, masks are collected and applied, each row says its next token."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from harness.deployments.embedded.clock import Clock, clock
from harness.deployments.embedded.model import Model
from harness.deployments.embedded.passes import Pass
from harness.deployments.embedded.row import Row, Said
from harness.deployments.embedded.slots import Slots
from harness.deployments.embedded.speaking import speak
from harness.deployments.embedded.steering import steer
from harness.processors.masker import Masker, Steering
from harness.request import Failure


@dataclass(frozen=True)
class Spoken:
    """What a step did to one row: the token it said, or the failure that ends it."""

    row: Row
    result: Said | Failure


@dataclass
class _Collected:
    """What one masker gave for its rows, by their place in the step, and when it was asked and had answered."""

    begin: float
    end: float
    answers: dict[int, Steering] = field(default_factory=dict)


class Stepper:
    """Runs steps on one model and its slots."""

    def __init__(self, model: Model, slots: Slots) -> None:
        self._model, self._slots = model, slots
        self._cache = model.cache(slots.store)
        self._clock: Clock = clock(model.device)

    def step(self, passes: Sequence[Pass]) -> list[Spoken]:
        """A token, or a failure, for each row that has all its other tokens behind it after these passes."""
        rows = [row for one in passes for row in one.speaking()]
        maskers = _by_masker(rows)
        _start(maskers, rows)
        launched = time.perf_counter()
        raw, marks = self._forward(passes)
        collected = [_collect(masker, places, rows, raw) for masker, places in maskers.items()]
        answers = {place: answer for one in collected for place, answer in one.answers.items()}
        begin = time.perf_counter()
        steered = steer(raw, answers)
        apply_s = time.perf_counter() - begin
        results = speak(rows, raw, steered, answers) if rows else []
        forward_s = self._account_forward(passes, marks)
        _account_masks(rows, collected, launched + forward_s, apply_s)
        return [Spoken(row, result) for row, result in zip(rows, results, strict=True)]

    def _forward(self, passes: Sequence[Pass]) -> tuple[torch.Tensor, list[Any]]:
        """The logits of the rows that speak, shape `(n, width)`, and the instants between the passes."""
        marks = [self._clock.mark()]
        logits = []
        for one in passes:
            logits.append(self._run(one))
            marks.append(self._clock.mark())
        return (logits[0] if len(logits) == 1 else torch.cat(logits)), marks

    def _run(self, one: Pass) -> torch.Tensor:
        speaking, order = one.speaking(), one.order()
        places = [place for row, place in zip(one.rows, order, strict=True) if row in speaking]
        logits = self._model.forward(self._cache, one.plan())[:, -1]
        for row, count in one.pairs():
            self._slots.extend(row.slot, row.ids[row.computed : row.computed + count])
            row.computed += count
        return logits if places == list(range(len(logits))) else logits[places]

    def _account_forward(self, passes: Sequence[Pass], marks: Sequence[Any]) -> float:
        total_rows = sum(len(one.rows) for one in passes)
        for one, first, last in zip(passes, marks, marks[1:], strict=False):
            share = self._clock.seconds(first, last) / len(one.rows)
            for row in one.rows:
                row.spent.forward_s += share
                if row.pending == 0:  # it spoke; a part of a prompt is no decode step
                    row.spent.steps += 1
                    row.spent.rows += total_rows
        return self._clock.seconds(marks[0], marks[-1])


def _by_masker(rows: Sequence[Row]) -> dict[Masker, list[int]]:
    """The places of the rows that each masker constrains."""
    maskers: dict[Masker, list[int]] = {}
    for place, row in enumerate(rows):
        if row.masker is not None:
            maskers.setdefault(row.masker, []).append(place)
    return maskers


def _start(maskers: Mapping[Masker, Sequence[int]], rows: Sequence[Row]) -> None:
    for masker, places in maskers.items():
        begin = time.perf_counter()
        masker.start([rows[place].id for place in places])
        share = (time.perf_counter() - begin) / len(places)
        for place in places:
            rows[place].spent.wait_s += share


def _collect(masker: Masker, places: Sequence[int], rows: Sequence[Row], raw: torch.Tensor) -> _Collected:
    ids = [rows[place].id for place in places]
    logits = raw if len(places) == len(raw) else raw[list(places)]
    begin = time.perf_counter()
    given = masker.collect(ids, logits)
    answers = {place: given[name] for place, name in zip(places, ids, strict=True)}
    return _Collected(begin, time.perf_counter(), answers)


def _account_masks(rows: Sequence[Row], collected: Sequence[_Collected], computed: float, apply_s: float) -> None:
    """`computed`: when the model was through. Until then, no wait for a mask held anything up."""
    constrained = sum(len(one.answers) for one in collected)
    for one in collected:
        stood_still = max(0.0, one.end - max(one.begin, computed))
        for place, answer in one.answers.items():
            spent = rows[place].spent
            spent.wait_s += stood_still / len(one.answers)
            spent.apply_s += apply_s / constrained
            spent.mask_s += 0.0 if isinstance(answer, Failure) else answer.mask_s
