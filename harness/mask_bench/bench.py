"""One benchmark: every engine on every schema, in random order for each schema, a line a schema.

A benchmark that was stopped goes on in its folder with the schemas that have no line yet.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from harness.folder import keep, writing
from harness.mask import words
from harness.mask_bench.agreement import Drawn, Masks, drawn, pair_rows
from harness.mask_bench.config import MasksConfig
from harness.mask_bench.folder import RECORDS, Start, done, open_folder
from harness.mask_bench.guard import Broken, Guarded
from harness.mask_bench.instances import Instance, digest, read
from harness.mask_bench.judging import REFERENCE, Case, judged, oracle
from harness.mask_bench.messages import Compiled, Refused, Walk, Walked
from harness.mask_bench.messages import Done as Over
from harness.mask_bench.rows import CaseRow, Disputed, EngineRow, Outcome, Row
from harness.mask_bench.tokenizer import Known, load
from harness.record import Journal

SHOW_S = 10.0


@dataclass(frozen=True)
class Bench:
    """What a benchmark works with: a guarded process for each engine, and one for the reference that judges."""

    config: MasksConfig
    known: Known
    engines: dict[str, Guarded]
    judge: Guarded

    def stop(self) -> None:
        """End all processes."""
        for guarded in (*self.engines.values(), self.judge):
            guarded.stop()


def run(config: MasksConfig) -> Path:
    """Walk what is missing; returns the folder. Raises `HarnessError` for what is wrong with the set-up. Ctrl-C leaves
    whole lines behind."""
    instances, known = read(config.sources, config.first), load(config.tokenizer)
    for text in (case.text for instance in instances for case in instance.cases):
        known.ids(text)  # raises before anything is walked
    bench = _bench(config, known)
    try:
        ready = {name: guarded.start() for name, guarded in bench.engines.items()}
        start = Start(config, known.vocabulary.fingerprint(), digest(instances), ready)
        session = open_folder(config.path, start)
        _rows(bench, instances, session)
    finally:
        bench.stop()
    return config.path


def _bench(config: MasksConfig, known: Known) -> Bench:
    engines = {name: Guarded(name, known.vocabulary, config.limits) for name in config.engines}
    judge = engines.get(REFERENCE) or Guarded(REFERENCE, known.vocabulary, config.limits)
    return Bench(config, known, engines, judge)


def _rows(bench: Bench, instances: Sequence[Instance], session: int) -> None:
    already = done(bench.config.path)
    todo = [instance for instance in instances if instance.id not in already]
    Random(bench.config.seed).shuffle(todo)  # so that what is done at any time is a random sample
    with writing(RECORDS):
        journal = Journal(bench.config.path / RECORDS)
    shown_s = time.monotonic()
    try:
        for number, instance in enumerate(todo, 1):
            keep(journal, row(bench, instance, session))
            if time.monotonic() - shown_s > SHOW_S:
                shown_s = time.monotonic()
                print(f"{number}/{len(todo)} schemas", file=sys.stderr, flush=True)
    finally:
        journal.close()


def row(bench: Bench, instance: Instance, session: int) -> Row:
    """One schema, all engines."""
    random = Random(f"{bench.config.seed} {instance.id}")
    order = random.sample(sorted(bench.engines), len(bench.engines))
    ids = [bench.known.ids(case.text) for case in instance.cases]
    walked = {name: _walk(bench.engines[name], instance, ids) for name in order}
    masks = {name: walked[name][1] for name in bench.engines if walked[name][1]}
    return Row(
        id=instance.id,
        session=session,
        order=tuple(order),
        valid=tuple(case.valid for case in instance.cases),
        oracle=(accepted := oracle(instance, bench.judge)),
        tokens=tuple(map(len, ids)),
        engines={name: walked[name][0] for name in bench.engines},
        pairs=tuple(pair_rows(masks)),
        disputed=_disputed(bench, instance, ids, masks, accepted, random),
    )


def _walk(guarded: Guarded, instance: Instance, ids: Sequence[tuple[int, ...]]) -> tuple[EngineRow, list[Masks]]:
    """An engine's row, and its masks on each text that it walked."""
    compile_s: float | None = None
    cases, masks = list[CaseRow](), list[Masks]()
    size = words(guarded.known.width)
    try:
        for said in guarded.ask(Walk(instance.constraint, tuple(ids))):
            match said:
                case Compiled():
                    compile_s = said.compile_s
                case Walked():
                    cases.append(CaseRow(said.us, said.refused))
                    masks.append(np.frombuffer(said.masks, dtype=np.uint32).reshape(-1, size))
                case Refused():
                    outcome = _refusal(said, compiled=compile_s is not None)
                    return EngineRow(outcome, said.reason, compile_s, tuple(cases)), masks
                case Over():
                    return EngineRow("ok", "", compile_s, tuple(cases), said.peak_mib), masks
    except Broken as broken:
        where = "compiling" if compile_s is None else f"masks of text {len(cases) + 1} of {len(ids)}"
        return EngineRow(broken.death, f"{where}: {broken.reason}", compile_s, tuple(cases)), masks
    raise AssertionError("a walk ends with a last word")


def _refusal(said: Refused, compiled: bool) -> Outcome:
    """What an engine says it cannot do once it has compiled is a fault."""
    return "unsupported" if said.unsupported and not compiled else "error"


def _disputed(
    bench: Bench,
    instance: Instance,
    ids: Sequence[tuple[int, ...]],
    masks: dict[str, list[Masks]],
    accepted: tuple[bool, ...] | None,
    random: Random,
) -> tuple[Disputed, ...]:
    found: list[Drawn] = list(drawn(masks, bench.config.samples, random))
    if not found:
        return ()
    reference = masks.get(REFERENCE) or _walk(bench.judge, instance, ids)[1]
    case = Case(instance, ids, reference, accepted, bench.known.vocabulary)
    return tuple(judged(one, case, bench.engines[one.allower], bench.judge) for one in found)
