"""Processors as users write them, good and bad, for the tests of `method.call`.

A factory here picks what to do by the first label of the constraint, so that one worker serves many tests.
"""

import asyncio
import ctypes
import math
import os
import sys
import time
import weakref
from collections.abc import AsyncGenerator, Callable
from typing import Any, ClassVar

import torch
from user_engines import FAULTY

from harness.constraint import Constraint, Labels
from harness.processors.engine_processor import async_processor_factory, processor_factory
from harness.vocabulary import Vocabulary

masking = processor_factory(FAULTY)
async_masking = async_processor_factory(FAULTY)


def keep(logits: torch.Tensor, *tokens: int) -> torch.Tensor:
    """Only `tokens` stay possible."""
    new = torch.full_like(logits, -math.inf)
    new[list(tokens)] = logits[list(tokens)]
    return new


def faulty(constraint: Constraint, vocabulary: Vocabulary) -> Callable[[list[int], torch.Tensor], Any]:
    """A processor that does what the first label says, and one that masks where it says nothing special."""
    assert isinstance(constraint, Labels)
    match constraint.labels[0]:
        case "factory raises":
            raise RuntimeError("no such grammar")
        case "factory exits":
            sys.exit(3)
        case "factory gives none":
            return None  # type: ignore[return-value]
        case "factory hangs":
            time.sleep(3600)
        case "forces":
            return forcing(constraint, vocabulary)
        case "counts":
            return Counting()
    deed = DEEDS.get(constraint.labels[0])
    return deed or masking(constraint, vocabulary)


def _raise(inputs: list[int], logits: torch.Tensor) -> torch.Tensor:
    raise ValueError(f"cannot follow {len(inputs)} tokens")


def _raise_later(inputs: list[int], logits: torch.Tensor) -> torch.Tensor:
    if len(inputs) == 2:
        raise KeyError("lost")
    return logits


def _exit(inputs: list[int], logits: torch.Tensor) -> torch.Tensor:
    sys.exit("enough")


def _exit_hard(inputs: list[int], logits: torch.Tensor) -> torch.Tensor:
    os._exit(7)


def _crash(inputs: list[int], logits: torch.Tensor) -> torch.Tensor:
    ctypes.string_at(0)
    return logits


def _hang(inputs: list[int], logits: torch.Tensor) -> torch.Tensor:
    time.sleep(3600)
    return logits


def _spin(inputs: list[int], logits: torch.Tensor) -> torch.Tensor:
    while True:
        pass


def _print(inputs: list[int], logits: torch.Tensor) -> torch.Tensor:
    print("x" * 100_000)
    os.write(1, b"\x00" * 1000)
    return keep(logits, 5)


def _in_place(inputs: list[int], logits: torch.Tensor) -> torch.Tensor:
    logits.fill_(0.0)
    logits[9] = 1.0
    return logits


DEEDS: dict[str, Callable[[list[int], torch.Tensor], Any]] = {
    "raises": _raise,
    "raises later": _raise_later,
    "exits": _exit,
    "exits hard": _exit_hard,
    "crashes": _crash,
    "hangs": _hang,
    "spins": _spin,
    "prints": _print,
    "in place": _in_place,
    "gives none": lambda inputs, logits: None,
    "gives a list": lambda inputs, logits: logits.tolist(),
    "short": lambda inputs, logits: logits[:-1],
    "batched": lambda inputs, logits: logits[None],
    "double": lambda inputs, logits: logits.double(),
    "nan": lambda inputs, logits: logits.index_fill(0, torch.tensor([3]), math.nan),
    "infinite": lambda inputs, logits: logits.index_fill(0, torch.tensor([3]), math.inf),
    "all forbidden": lambda inputs, logits: torch.full_like(logits, -math.inf),
}


def forcing(constraint: Constraint, vocabulary: Vocabulary) -> Callable[[list[int], torch.Tensor], torch.Tensor]:
    """Spells the second label letter by letter, then stops, as its history says."""
    assert isinstance(constraint, Labels)
    path = [*(vocabulary.tokens.index(letter.encode()) for letter in constraint.labels[1]), *vocabulary.stop_ids]
    return lambda inputs, logits: keep(logits, path[len(inputs)])


def async_forcing(constraint: Constraint, vocabulary: Vocabulary) -> Callable[[list[int]], AsyncGenerator[Any, Any]]:
    """The same as an async processor, which waits a little, so that sequences overtake each other."""
    forced = forcing(constraint, vocabulary)

    async def processor(inputs: list[int]) -> AsyncGenerator[torch.Tensor | None, torch.Tensor]:
        await asyncio.sleep(0.001 * (len(inputs) % 3))
        logits = yield None
        await asyncio.sleep(0)
        yield forced(inputs, logits)

    return processor


class Counting:
    """A processor that says how many of its kind live in its worker: it leaves only the token of that number."""

    live: ClassVar["weakref.WeakSet[Counting]"] = weakref.WeakSet()

    def __init__(self) -> None:
        self.live.add(self)

    def __call__(self, inputs: list[int], logits: torch.Tensor) -> torch.Tensor:
        return keep(logits, len(self.live))


def async_faulty(constraint: Constraint, vocabulary: Vocabulary) -> Any:
    """An async processor that does what the first label says, and one that masks where it says nothing special."""
    assert isinstance(constraint, Labels)
    match constraint.labels[0]:
        case "forces":
            return async_forcing(constraint, vocabulary)
        case "counts":
            return Closing()
    return ASYNC_DEEDS.get(constraint.labels[0]) or async_masking(constraint, vocabulary)


async def _async_raise(inputs: list[int]) -> AsyncGenerator[Any, Any]:
    yield
    raise ValueError("no mask today")


async def _async_raise_first(inputs: list[int]) -> AsyncGenerator[Any, Any]:
    raise ValueError("not even a yield")
    yield


async def _async_exit(inputs: list[int]) -> AsyncGenerator[Any, Any]:
    sys.exit(1)
    yield


async def _async_exit_hard(inputs: list[int]) -> AsyncGenerator[Any, Any]:
    yield
    os._exit(7)


async def _async_hang(inputs: list[int]) -> AsyncGenerator[Any, Any]:
    await asyncio.Event().wait()
    yield


async def _async_block(inputs: list[int]) -> AsyncGenerator[Any, Any]:
    time.sleep(3600)
    yield


async def _async_never(inputs: list[int]) -> AsyncGenerator[Any, Any]:
    if inputs == [-1]:
        yield


async def _async_once(inputs: list[int]) -> AsyncGenerator[Any, Any]:
    yield


async def _async_thrice(inputs: list[int]) -> AsyncGenerator[Any, Any]:
    logits = yield
    yield logits
    yield logits


async def _async_early(inputs: list[int]) -> AsyncGenerator[Any, Any]:
    yield torch.zeros(3)


async def _async_list(inputs: list[int]) -> AsyncGenerator[Any, Any]:
    logits = yield
    yield logits.tolist()


async def _async_cancel(inputs: list[int]) -> AsyncGenerator[Any, Any]:
    yield
    raise asyncio.CancelledError


async def _no_generator(inputs: list[int]) -> torch.Tensor:
    return torch.zeros(3)


ASYNC_DEEDS: dict[str, Any] = {
    "raises": _async_raise,
    "raises first": _async_raise_first,
    "exits": _async_exit,
    "exits hard": _async_exit_hard,
    "hangs": _async_hang,
    "blocks": _async_block,
    "never yields": _async_never,
    "yields once": _async_once,
    "yields thrice": _async_thrice,
    "yields early": _async_early,
    "gives a list": _async_list,
    "cancels itself": _async_cancel,
    "is no generator": _no_generator,
    "is not async": lambda inputs: torch.zeros(3),
}


class Closing:
    """An async processor that counts the generators that are open and leaves only the token of that number."""

    open = 0

    async def __call__(self, inputs: list[int]) -> AsyncGenerator[Any, Any]:
        Closing.open += 1
        try:
            logits = yield
            yield keep(logits, Closing.open)
        finally:
            Closing.open -= 1
