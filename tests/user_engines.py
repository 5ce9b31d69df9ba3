"""Mask engines as users write them, good and bad, for the tests of workers. No torch here: their workers start fast."""

import ctypes
import os
import signal
import sys
import time

import numpy as np

from harness.constraint import Constraint, Labels
from harness.errors import Unsupported
from harness.mask import Automaton, Compiler, Mask, MaskEngine, Matcher, allow
from harness.masks.stopping import Ends, Stopping
from harness.vocabulary import Vocabulary


class Faulty:
    """Takes labels. Where the first label is a place and a deed ("compile raises", "fill hangs"), compiling, or making
    the mask after two tokens, does that."""

    name = "faulty"

    def version(self) -> str:
        return "1"

    def compiler(self, vocabulary: Vocabulary) -> Compiler:
        return _Compiler(vocabulary)


class _Compiler:
    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._ends = Ends(vocabulary)

    def compile(self, constraint: Constraint) -> Automaton:
        if not isinstance(constraint, Labels):
            raise Unsupported("only labels")
        place, _, deed = constraint.labels[0].partition(" ")
        if place == "compile":
            _do(deed)
        return _Automaton(constraint.labels, deed if place == "fill" else "", self._vocabulary, self._ends)


class _Automaton:
    def __init__(self, labels: tuple[str, ...], deed: str, vocabulary: Vocabulary, ends: Ends) -> None:
        self._labels = [label.encode() for label in labels]
        self._deed = deed
        self._vocabulary = vocabulary
        self._ends = ends

    def matcher(self) -> Matcher:
        return Stopping(_Spelt(self._labels, self._deed, self._vocabulary), self._ends)


class _Spelt:
    """What is spelt so far, and the tokens that go on towards a label."""

    def __init__(self, labels: list[bytes], deed: str, vocabulary: Vocabulary) -> None:
        self._labels = labels
        self._deed = deed
        self._vocabulary = vocabulary
        self._said: list[int] = []

    def fill(self, mask: Mask) -> None:
        mask[:] = 0
        if len(self._said) == 2:
            _do(self._deed)
        if self._deed != "forbids all":
            allow(mask, np.array([i for i in range(len(self._vocabulary.tokens)) if self._fits(i)], dtype=np.int64))

    def take(self, token: int) -> bool:
        if fits := self._fits(token):
            self._said.append(token)
        return fits

    def complete(self) -> bool:
        return self._vocabulary.bytes_of(self._said) in self._labels and self._deed != "forbids all"

    def _fits(self, token: int) -> bool:
        spelt = self._vocabulary.bytes_of([*self._said, token])
        return any(label.startswith(spelt) for label in self._labels)


def _do(deed: str) -> None:
    match deed:
        case "raises":
            raise ValueError("the table is torn")
        case "refuses":
            raise Unsupported("no such thing here")
        case "exits":
            sys.exit(3)
        case "exits hard":
            os._exit(3)
        case "crashes":
            ctypes.string_at(0)
        case "is killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hangs":
            time.sleep(3600)
        case "spins":
            while True:
                pass


FAULTY: MaskEngine = Faulty()
