"""lm-format-enforcer (https://github.com/noamgat/lm-format-enforcer): character-level parsers, in Python.

It takes labels, regexes and JSON schemas, and parsers that users write. Its own loop keeps a state for every history of
tokens, and its table of tokens needs an integration that does not import under transformers 5. Here its parsers are
walked over a table made from the vocabulary's bytes; what may be said stays the library's answer.
"""

from importlib.metadata import version

import numpy as np

from harness.constraint import Constraint, JsonSchema
from harness.mask import Automaton, Compiler, Mask, Matcher
from harness.masks.lm_format_enforcer.machine import Machine
from harness.masks.lm_format_enforcer.parsers import parser
from harness.masks.lm_format_enforcer.pieces import read
from harness.masks.lm_format_enforcer.table import Table
from harness.masks.stopping import Stopping
from harness.vocabulary import Vocabulary


class Engine:
    """lm-format-enforcer as a `harness.mask.MaskEngine`."""

    name = "lm_format_enforcer"
    releases_lock = False

    def version(self) -> str:
        return version("lm-format-enforcer")

    def compiler(self, vocabulary: Vocabulary) -> Compiler:
        return _Compiler(vocabulary)


class _Compiler:
    def __init__(self, vocabulary: Vocabulary) -> None:
        self._table = Table(vocabulary)

    def compile(self, constraint: Constraint) -> Automaton:
        start, alphabet = parser(constraint, self._table.alphabet)
        spaces = not (isinstance(constraint, JsonSchema) and constraint.whitespace == "compact")
        return _Automaton(Machine(self._table, alphabet, start, spaces))


class _Automaton:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def matcher(self) -> Matcher:
        return Stopping(_Text(self._machine), self._machine.table.ends)


class _Text:
    """One sequence: the state after its whole characters, and the bytes that begin the next."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._state = machine.start()
        self._begun = b""

    def fill(self, mask: Mask) -> None:
        np.copyto(mask, self._machine.mask(self._state, self._begun))

    def take(self, token: int) -> bool:
        piece = read(self._begun + (self._machine.table.vocabulary.tokens[token] or b""))
        state = None if piece is None else self._machine.take(self._state, self._begun, token, *piece)
        if piece is None or state is None:
            return False
        self._state, self._begun = state, piece[1]
        return True

    def complete(self) -> bool:
        return not self._begun and bool(self._state.parser.can_end())


ENGINE = Engine()
