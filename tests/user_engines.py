"""Mask engines as users write them, good and bad, for the tests of workers. No torch here: their workers start fast."""

import ctypes
import os
import signal
import sys
import time

from harness.constraint import Constraint, Labels
from harness.errors import Unsupported
from harness.mask import Automaton, Compiler, Mask, MaskEngine, Matcher
from harness.masks import engine
from harness.vocabulary import Vocabulary


class Faulty:
    """The reference, except where the first label names a deed: compiling or filling then does that."""

    name = "faulty"
    releases_lock = False

    def version(self) -> str:
        return "1"

    def compiler(self, vocabulary: Vocabulary) -> Compiler:
        return _Compiler(vocabulary)


class _Compiler:
    def __init__(self, vocabulary: Vocabulary) -> None:
        self._sound = engine("reference").compiler(vocabulary)

    def compile(self, constraint: Constraint) -> Automaton:
        assert isinstance(constraint, Labels)
        place, _, deed = constraint.labels[0].partition(" ")
        if place == "compile":
            _do(deed)
        sound = self._sound.compile(constraint)
        return _Automaton(sound, deed if place == "fill" else "")


class _Automaton:
    def __init__(self, sound: Automaton, deed: str) -> None:
        self._sound = sound
        self._deed = deed

    def matcher(self) -> Matcher:
        return _Matcher(self._sound.matcher(), self._deed)


class _Matcher:
    def __init__(self, sound: Matcher, deed: str) -> None:
        self._sound = sound
        self._deed = deed
        self._said = 0

    def fill(self, mask: Mask) -> None:
        if self._said == 2:
            _do(self._deed)
        self._sound.fill(mask)
        if self._deed == "nothing":
            mask[:] = 0

    def advance(self, token: int) -> None:
        self._said += 1
        self._sound.advance(token)

    def finished(self) -> bool:
        return self._sound.finished()


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
        case "closes its channel":
            os.closerange(3, 256)
        case "dies unseen":
            _die_later()


def _die_later() -> None:
    """A child ends this process soon, when it is busy with nobody's sequence."""
    if os.fork() == 0:
        time.sleep(0.2)
        os.kill(os.getppid(), signal.SIGKILL)
        os._exit(0)


FAULTY: MaskEngine = Faulty()
