"""Engines that do what no engine should, for the benchmark's guard: only on the pattern `bad`."""

import os

from harness.constraint import Constraint, Regex
from harness.errors import Unsupported
from harness.mask import Automaton, Compiler
from harness.vocabulary import Vocabulary


class Bad:
    """Takes memory without end, or dies."""

    name = "bad"

    def __init__(self, dies: bool) -> None:
        self._dies = dies

    def version(self) -> str:
        return "0"

    def compiler(self, vocabulary: Vocabulary) -> Compiler:
        return self

    def compile(self, constraint: Constraint) -> Automaton:
        if constraint != Regex("bad"):
            raise Unsupported("nothing but bad")
        if self._dies:
            os._exit(7)
        held = []
        while True:
            held.append(b"x" * 2**22)


GREEDY, DYING = Bad(False), Bad(True)
