"""Any mask engine as the processors that users write: the shipped engines come through the same door.

    factory = processor_factory(engine("lm_format_enforcer"))            # for method=processor
    async_factory = async_processor_factory(engine("lm_format_enforcer"))  # for method=async

A module that holds one of these is a `call`, and `call` and `engine` then give the same answers.
"""

import math
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

import numpy as np

from harness.constraint import Constraint
from harness.mask import Mask, MaskEngine, empty_mask
from harness.processors.desk import Automata
from harness.vocabulary import Vocabulary

if TYPE_CHECKING:
    import torch

    from harness.processors.protocols import (
        AsyncLogitsProcessor,
        AsyncProcessorFactory,
        LogitsProcessor,
        ProcessorFactory,
    )


class Follower:
    """One sequence under an engine, told its whole history each time."""

    def __init__(self, automata: Automata, constraint: Constraint, width: int) -> None:
        self._automaton, _ = automata.automaton(constraint)
        self._matcher = self._automaton.matcher()
        self._said: list[int] = []
        self._mask = empty_mask(width)

    def mask(self, inputs: list[int]) -> Mask:
        """The mask after `inputs`. A history that does not go on from the last one is followed from its start."""
        if inputs[: len(self._said)] != self._said:
            self._matcher, self._said = self._automaton.matcher(), []
        for token in inputs[len(self._said) :]:
            self._matcher.advance(token)
        self._said = list(inputs)
        self._matcher.fill(self._mask)
        return self._mask


def forbid(logits: "torch.Tensor", mask: Mask) -> "torch.Tensor":
    """`logits`, shape `(width,)`, with -inf wherever `mask` allows nothing."""
    import torch

    bits = np.unpackbits(mask.view(np.uint8), bitorder="little", count=logits.shape[0])
    return logits.masked_fill(torch.from_numpy(bits) == 0, -math.inf)


def processor_factory(engine: MaskEngine) -> "ProcessorFactory":
    """A factory of processors (`harness.processors.protocols.LogitsProcessor`) that mask with `engine`."""
    compiled = _Compiled(engine)

    def factory(constraint: Constraint, vocabulary: Vocabulary) -> "LogitsProcessor":
        follower = Follower(compiled.automata(vocabulary), constraint, vocabulary.width)

        def processor(inputs: list[int], logits: "torch.Tensor") -> "torch.Tensor":
            return forbid(logits, follower.mask(inputs))

        return processor

    return factory


def async_processor_factory(engine: MaskEngine) -> "AsyncProcessorFactory":
    """A factory of async processors (`harness.processors.protocols.AsyncLogitsProcessor`) that mask with `engine`."""
    compiled = _Compiled(engine)

    def factory(constraint: Constraint, vocabulary: Vocabulary) -> "AsyncLogitsProcessor":
        follower = Follower(compiled.automata(vocabulary), constraint, vocabulary.width)

        async def processor(inputs: list[int]) -> "AsyncGenerator[torch.Tensor | None, torch.Tensor]":
            mask = follower.mask(inputs)
            logits = yield None
            yield forbid(logits, mask)

        return processor

    return factory


class _Compiled:
    """The compiled constraints of one engine, for the vocabulary that it is asked for."""

    def __init__(self, engine: MaskEngine) -> None:
        self._engine = engine
        self._last: tuple[Vocabulary, Automata] | None = None

    def automata(self, vocabulary: Vocabulary) -> Automata:
        if self._last is None or self._last[0] is not vocabulary:
            self._last = vocabulary, Automata(self._engine, vocabulary)
        return self._last[1]
