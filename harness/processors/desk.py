"""What a worker does for many sequences, one at a time: masks by an engine, or new logits by the user's callables."""

import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from harness.constraint import Constraint
from harness.mask import Automaton, MaskEngine, Matcher, words
from harness.processors.containment import ProcessorFault, checked
from harness.processors.protocols import Factory
from harness.processors.segment import Segment
from harness.vocabulary import Vocabulary

COMPILED_KEPT = 64
"""How many compiled constraints a worker keeps; the one used longest ago goes first. A large table of outlines takes
hundreds of MiB, so that more would fill the memory where every example has a schema of its own."""


class Desk(Protocol):
    """Sequences by key. Whatever engines and users' code raise comes through."""

    def open(self, key: int, constraint: Constraint, tokens: tuple[int, ...]) -> float:
        """A sequence that begins with `tokens`; the seconds that the first use of its constraint took."""

    def make(self, key: int, tokens: tuple[int, ...], row: int) -> int:
        """`tokens` were said: put the mask, or the new logits, in `row`. Returns how many tokens it follows."""

    def close(self, key: int) -> None:
        """Forget a sequence; unknown keys are allowed."""


class Automata:
    """The compiled constraints of one engine and vocabulary."""

    def __init__(self, engine: MaskEngine, vocabulary: Vocabulary) -> None:
        self._compiler = engine.compiler(vocabulary)
        self._kept: dict[Constraint, Automaton] = {}

    def automaton(self, constraint: Constraint) -> tuple[Automaton, float]:
        """The automaton, and the seconds its compilation took (0.0 where it was there). Raises `Unsupported`."""
        started = time.perf_counter()
        found = self._kept.pop(constraint, None)
        compiled = self._compiler.compile(constraint) if found is None else found
        self._kept[constraint] = compiled
        if len(self._kept) > COMPILED_KEPT:
            del self._kept[next(iter(self._kept))]
        return compiled, time.perf_counter() - started if found is None else 0.0


class Masks:
    """A `Desk` that makes masks."""

    def __init__(self, engine: MaskEngine, vocabulary: Vocabulary, segment: Segment) -> None:
        self._automata = Automata(engine, vocabulary)
        self._words = words(vocabulary.width)
        self._segment = segment
        self._matchers: dict[int, Matcher] = {}
        self._said: dict[int, int] = {}

    def open(self, key: int, constraint: Constraint, tokens: tuple[int, ...]) -> float:
        automaton, compile_s = self._automata.automaton(constraint)
        self._matchers[key] = automaton.matcher()
        self._said[key] = 0
        self._advance(key, tokens)
        return compile_s

    def make(self, key: int, tokens: tuple[int, ...], row: int) -> int:
        self._advance(key, tokens)
        mask = self._segment.row(row, np.int32, self._words)
        self._matchers[key].fill(mask)
        if not mask.any():
            raise ProcessorFault(f"the mask allows no token after {self._said[key]} tokens")
        return self._said[key]

    def close(self, key: int) -> None:
        self._matchers.pop(key, None)
        self._said.pop(key, None)

    def _advance(self, key: int, tokens: tuple[int, ...]) -> None:
        matcher = self._matchers[key]
        for token in tokens:
            matcher.advance(token)
        self._said[key] += len(tokens)


class Calls:
    """A `Desk` that calls the user's processors."""

    def __init__(self, factory: Factory, vocabulary: Vocabulary, segment: Segment) -> None:
        self._factory = factory
        self._vocabulary = vocabulary
        self._segment = segment
        self._processors: dict[int, Callable[[list[int], Any], object]] = {}
        self._inputs: dict[int, list[int]] = {}

    def open(self, key: int, constraint: Constraint, tokens: tuple[int, ...]) -> float:
        started = time.perf_counter()
        processor = self._factory(constraint, self._vocabulary)
        if not callable(processor):
            raise ProcessorFault(f"the factory gave {type(processor).__name__}, not a processor")
        self._processors[key] = processor
        self._inputs[key] = list(tokens)
        return time.perf_counter() - started

    def make(self, key: int, tokens: tuple[int, ...], row: int) -> int:
        import torch

        inputs = self._inputs[key]
        inputs += tokens
        width = self._vocabulary.width
        shared = torch.from_numpy(self._segment.row(row, np.float32, width))
        shared.copy_(checked(self._processors[key](list(inputs), shared.clone()), width))
        return len(inputs)

    def close(self, key: int) -> None:
        self._processors.pop(key, None)
        self._inputs.pop(key, None)
