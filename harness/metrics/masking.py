"""What the mask did: the mass it kept, what it forced, and what the model wanted where it was forbidden."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator

import msgspec
import numpy as np

from harness.metrics.columns import Arm
from harness.metrics.estimate import Estimate, nothing
from harness.metrics.intervals import bounded, bounded_mean
from harness.metrics.whole import Trace, Whole

EDGES = tuple(i / 20 for i in range(21))
WISHES = 20
EXAMPLES = 3
SLACK = 1e-4
"""Log-probabilities of one step that lie closer than this are equal: they went through float32 and back."""


class Wish(msgspec.Struct, frozen=True):
    """A token that the model wanted and the mask forbade: how often, how probable it was on average, and the first
    examples where it happened. Token ids, because metrics know no vocabulary; `instead` is what was said most often."""

    token: int
    instead: int
    count: int
    probability: float
    examples: tuple[str, ...]


class Wanted(msgspec.Struct, frozen=True):
    """Over the constrained tokens of one arm whose traces were read.

    `forbidden`: the unmasked most likely token was not allowed. `undecided`: sampled another token, and the trace
    cannot say whether the most likely one was allowed. `wishes`: the most frequent first.
    `kept` is a histogram of the per-token mass the mask kept, over `edges`.
    """

    answers: int
    tokens: int
    forbidden: int
    undecided: int
    forced: int
    wishes: tuple[Wish, ...]
    edges: tuple[float, ...]
    kept: tuple[int, ...]


class Step(msgspec.Struct, frozen=True):
    """One constrained token: what was said, what the mask did, what the model wanted."""

    said: int
    raw: float
    mass: float
    allowed: int | None
    wanted: int
    wanted_logprob: float


def masking(arm: Arm) -> dict[str, Estimate]:
    """Means over answers of what records say of the mask, and of constrained minus unconstrained confidence."""
    masked = ~np.isnan(arm.number["mass"])
    gap = np.where(masked, arm.number["path_confidence"] - arm.number["raw_confidence"], np.nan)
    found = {}
    for name, values, low in (
        ("mass", arm.number["mass"], 0.0),
        ("forced", arm.number["forced"], 0.0),
        ("confidence_gap", gap, -1.0),
    ):
        known = arm.answered & ~np.isnan(values)
        found[name] = bounded_mean(values[known], arm.clusters(known), low, 1.0)
    return found


class Wishing:
    """Collects, over the records of one arm, what the model wanted and what it was given."""

    def __init__(self, greedy: bool) -> None:
        self._greedy = greedy
        self._answers: list[tuple[int, int]] = []
        self._undecided = self._forced = 0
        self._kept: list[float] = []
        self._count: Counter[int] = Counter()
        self._probability: defaultdict[int, float] = defaultdict(float)
        self._instead: defaultdict[int, Counter[int]] = defaultdict(Counter)
        self._examples: defaultdict[int, list[str]] = defaultdict(list)

    def add(self, record: Whole) -> None:
        tokens = forbidden = 0
        for step in steps(record):
            tokens += 1
            self._kept.append(step.mass)
            self._forced += step.allowed == 1
            match was_forbidden(step, self._greedy):
                case True:
                    forbidden += 1
                    self._wish(step, record.example)
                case None:
                    self._undecided += 1
        if tokens:
            self._answers.append((forbidden, tokens))

    def wanted(self) -> Wanted | None:
        """What was collected; None where no constrained token had a trace."""
        if not self._answers:
            return None
        return Wanted(
            answers=len(self._answers),
            tokens=len(self._kept),
            forbidden=sum(forbidden for forbidden, _ in self._answers),
            undecided=self._undecided,
            forced=self._forced,
            wishes=tuple(self._wishes()),
            edges=EDGES,
            kept=tuple(np.histogram(np.clip(self._kept, 0, 1), EDGES)[0].tolist()),
        )

    def share(self) -> Estimate:
        """The share of tokens whose most likely choice was forbidden, spread over answers; n counts answers."""
        if not self._answers:
            return nothing()
        forbidden, tokens = np.array(self._answers, dtype=np.float64).T
        value, answers = float(forbidden.sum() / tokens.sum()), len(self._answers)
        variance = float(((forbidden - value * tokens) ** 2).sum() / tokens.sum() ** 2)
        return bounded(value, variance, answers, answers)

    def _wish(self, step: Step, example: str) -> None:
        self._count[step.wanted] += 1
        self._probability[step.wanted] += math.exp(step.wanted_logprob)
        self._instead[step.wanted][step.said] += 1
        examples = self._examples[step.wanted]
        if len(examples) < EXAMPLES and example not in examples:
            examples.append(example)

    def _wishes(self) -> Iterator[Wish]:
        for token, count in self._count.most_common(WISHES):
            instead = self._instead[token].most_common(1)[0][0]
            yield Wish(token, instead, count, self._probability[token] / count, tuple(self._examples[token]))


def steps(record: Whole) -> Iterator[Step]:
    """The constrained tokens of a record whose traces are whole."""
    for part in record.parts:
        if part.constrained and part.result.trace is not None:
            yield from _steps(part.result.token_ids, part.result.trace)


def _steps(said: list[int], trace: Trace) -> Iterator[Step]:
    columns = zip(said, trace.raw_logprob, trace.mass, trace.allowed, trace.wanted, trace.wanted_logprob, strict=False)
    for token, raw, mass, allowed, wanted, logprob in columns:
        if raw is not None and mass is not None and wanted is not None and logprob is not None:
            yield Step(token, raw, mass, allowed, wanted, logprob)


def was_forbidden(step: Step, greedy: bool) -> bool | None:
    """Whether the mask forbade the most likely token; None where the trace cannot say.

    Allowed, it is part of the mass that was kept; forbidden, it is part of the rest. A greedy choice of another, less
    likely token shows that it was forbidden.
    """
    probability = math.exp(step.wanted_logprob)
    if step.said == step.wanted or step.mass > 1 - probability + SLACK:
        return False
    if step.mass < probability - SLACK:
        return True
    if step.raw > step.wanted_logprob - SLACK:
        return False
    return True if greedy else None
