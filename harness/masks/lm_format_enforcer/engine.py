"""The library's parsers behind the protocols of `harness.mask`."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
from lmformatenforcer import CharacterLevelParser

from harness.constraint import Constraint, JsonSchema
from harness.mask import Automaton, Compiler, Mask, Matcher
from harness.masks.lm_format_enforcer.machine import Machine
from harness.masks.lm_format_enforcer.parsers import config, parser
from harness.masks.lm_format_enforcer.pieces import read
from harness.masks.lm_format_enforcer.table import Table
from harness.masks.stopping import Stopping
from harness.vocabulary import Vocabulary

Parse = Callable[[Constraint, str], tuple[CharacterLevelParser, str]]
"""From a constraint and the characters of the vocabulary to a parser and all characters that it knows."""


@dataclass(frozen=True)
class Engine:
    """A `harness.mask.MaskEngine` over parsers of lm-format-enforcer."""

    name: str
    parse: Parse

    def version(self) -> str:
        return version("lm-format-enforcer")

    def compiler(self, vocabulary: Vocabulary) -> Compiler:
        return _Compiler(Table(vocabulary), self.parse)


def parser_engine(name: str, make: Callable[[Constraint], CharacterLevelParser | None]) -> Engine:
    """An engine with parsers of one's own. `make` gives the parser before the text, None where the library has one for
    this constraint, or raises `harness.errors.Unsupported`. Its parser is then given a configuration, whose `alphabet`
    are the characters that "any" stands for, as the library does. Two parsers with the same `cache_key()` have to be
    the same state; without one no state is met twice, and nothing but the way there is remembered."""

    def parse(constraint: Constraint, alphabet: str) -> tuple[CharacterLevelParser, str]:
        own = make(constraint)
        if own is None:
            return parser(constraint, alphabet)
        own.config = config(alphabet)
        return own, alphabet

    return Engine(name, parse)


@dataclass(frozen=True)
class _Compiler:
    table: Table
    parse: Parse

    def compile(self, constraint: Constraint) -> Automaton:
        start, alphabet = self.parse(constraint, self.table.alphabet)
        spaces = not (isinstance(constraint, JsonSchema) and constraint.whitespace == "compact")
        return _Automaton(Machine(self.table, alphabet, start, spaces))


@dataclass(frozen=True)
class _Automaton:
    machine: Machine

    def matcher(self) -> Matcher:
        return Stopping(_Text(self.machine), self.machine.table.ends)


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
