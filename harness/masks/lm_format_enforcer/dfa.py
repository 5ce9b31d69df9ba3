"""A regex of the library as arrays, so that all tokens are tried at once.

The library keeps a regex as a finite automaton of interegular and asks it one character at a time, at each of the
hundred thousand places in the tree of tokens.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from interegular.fsm import FSM, State, anything_else
from lmformatenforcer import RegexParser
from numpy.typing import NDArray

from harness.masks.lm_format_enforcer.letters import Letters, LetterSets
from harness.masks.lm_format_enforcer.tree import SPACES, Tree

MANY = 16
"""From so many next characters on, trying all tokens at once is faster than walking from character to character."""


class Dfa:
    """The automaton of one regex over one tree. In a JSON string (`quoted`) a quote ends the text, a backslash has no
    place, and spaces are as the library has them: at most `run` in a row, and without effect before the text."""

    def __init__(self, parser: RegexParser, tree: Tree, sets: LetterSets, quoted: bool, run: int) -> None:
        fsm: FSM = parser.context.pattern
        symbols = [_symbol(fsm, letter, quoted) for letter in tree.letters]
        numbers = {symbol: i for i, symbol in enumerate(dict.fromkeys(symbols))}
        self._tree = tree
        self._regex = parser
        self._sets = sets
        self._columns = np.array([numbers[symbol] for symbol in symbols], dtype=np.int64)
        self._states = list(fsm.states)
        self._rows: dict[int, int] = {state: row for row, state in enumerate(self._states)}
        self._fresh, self._dead = len(self._rows), len(self._rows) + 1
        self._final = np.array([*(state in fsm.finals for state in self._states), fsm.initial in fsm.finals, False])
        self._steps = self._arrows(fsm, numbers)
        self._run = run if quoted else len(tree.levels)
        self._fits = tree.longest <= self._run

    def _arrows(self, fsm: FSM, numbers: dict["Symbol", int]) -> NDArray[np.int32]:
        steps = np.full((self._dead + 1, len(numbers)), self._dead, dtype=np.int32)
        for state, row in self._rows.items():
            arrows: dict[Any, Any] = dict(fsm.map.get(State(state), {}))
            for (_, transition), column in numbers.items():
                if transition in arrows:
                    steps[row, column] = self._rows[arrows[transition]]
        first = steps[self._rows[fsm.initial]]
        spaces = np.array([bool(space) for space, _ in numbers]) & (first != self._dead)
        steps[self._fresh] = np.where(spaces, self._fresh, first)
        return steps

    def reach(self, state: int, fresh: bool = False, spaces: int = 0) -> "Reach":
        """The places that text leads to from `state`; `fresh` where the string is empty so far, after `spaces`
        spaces."""
        states = self._tree.scan(self._fresh if fresh else self._rows[state], self._steps, self._columns)
        fits = self._fits & (self._tree.leading + spaces <= self._run)
        return Reach((states != self._dead) & fits, states)

    def tokens(self, reach: "Reach") -> NDArray[np.int64]:
        """The tokens that end at these places, and those that end there but for a character begun."""
        tree = self._tree
        whole = tree.token[reach.alive[tree.token_place]]
        ahead = (
            (self._letters(int(reach.states[place])), cut) for place, cut in tree.cut.items() if reach.alive[place]
        )
        cut = [token for letters, cut in ahead for token in letters.cut(cut)]
        return np.concatenate([whole, np.array(cut, dtype=np.int64)])

    def ends(self, reach: "Reach") -> list[int]:
        """The places where the string may end and tokens go on with the quote that ends it."""
        return [place for place in self._tree.quotes if reach.alive[place] and self._final[reach.states[place]]]

    def _letters(self, row: int) -> Letters:
        """What may follow in the state of `row`."""
        state = self._regex.context.pattern.initial if row == self._fresh else self._states[row]
        return self._sets.of(RegexParser(self._regex.context, self._regex.config, state).get_allowed_characters())


@dataclass(frozen=True, slots=True)
class Reach:
    """Which places can be reached, and the state at each of them (a row)."""

    alive: NDArray[np.bool_]
    states: NDArray[np.int32]


Symbol = tuple[str, int | None]
"""What a letter is to a regex: a transition of its automaton (None: no place), and the letter itself if it is a space
that may stand before a string's text."""


def _symbol(fsm: FSM, letter: str, quoted: bool) -> Symbol:
    if quoted and letter in '"\\':
        return "", None
    space = letter if quoted and letter in SPACES else ""
    if letter in fsm.alphabet:
        return space, fsm.alphabet[letter]
    return space, fsm.alphabet.get(anything_else)
