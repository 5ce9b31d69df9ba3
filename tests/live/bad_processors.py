"""Processors as users write them, shipped into the server with the module that they import: bad ones, and one that
forces a text from the history it is shown."""

import os
import time
from collections.abc import Callable
from typing import Any

import torch

from harness.constraint import Constraint, Labels
from harness.vocabulary import Vocabulary
from live.helper_of_processors import only

Processor = Callable[[list[int], torch.Tensor], Any]


def faulty(constraint: Constraint, vocabulary: Vocabulary) -> Processor:
    """Does what the first label says."""
    assert isinstance(constraint, Labels)
    return DEEDS[constraint.labels[0]]


def forcing(constraint: Constraint, vocabulary: Vocabulary) -> Processor:
    """Says the second to last labels, which are token ids, one after another, then stops."""
    assert isinstance(constraint, Labels)
    script = [*map(int, constraint.labels), *vocabulary.stop_ids]
    return lambda inputs, logits: only(logits, script[len(inputs)])


def _raise(inputs: list[int], logits: torch.Tensor) -> None:
    raise KeyError("no such state")


def _raise_later(inputs: list[int], logits: torch.Tensor) -> torch.Tensor:
    if len(inputs) == 2:
        raise KeyError("lost the thread")
    return only(logits, 5)


def _exit(inputs: list[int], logits: torch.Tensor) -> None:
    os._exit(3)


def _hang(inputs: list[int], logits: torch.Tensor) -> None:
    time.sleep(3600)


DEEDS: dict[str, Processor] = {
    "raises": _raise,
    "raises later": _raise_later,
    "exits": _exit,
    "hangs": _hang,
    "nan": lambda inputs, logits: logits * float("nan"),
    "short": lambda inputs, logits: logits[:7],
    "forbids all": lambda inputs, logits: torch.full_like(logits, -torch.inf),
}
