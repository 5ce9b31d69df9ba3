"""One constraint on one vocabulary: states of the library's parser, told apart by their keys, and the mask of each.

The library answers each question once: what a state's next characters are, whether the text may end, where a character
leads. The answers are kept with the state, so that the next walk through the tree of tokens is a walk through dicts.
"""

from collections.abc import Hashable, Iterable

import numpy as np
from lmformatenforcer import CharacterLevelParser

from harness.mask import Mask, allow, empty_mask
from harness.masks.lm_format_enforcer.keys import Keys
from harness.masks.lm_format_enforcer.table import OTHER, Node, Table

STATES = 50_000
"""States kept an automaton; then it starts anew."""


class Letters:
    """The characters that may come next; states with the same ones share them."""

    __slots__ = ("_begun", "_wide", "those")

    def __init__(self, those: frozenset[str]) -> None:
        self.those = those
        self._wide = [letter for letter in those if letter > "\x7f"]
        self._begun: dict[bytes, bool] = {}

    def begin(self, rest: bytes, alphabet: frozenset[str], table: Table) -> bool:
        """Whether some of them begins with the bytes `rest` and can be spelled to its end."""
        if not self._wide:
            return False
        known = self._begun.get(rest)
        if known is None:
            known = any(table.completes(rest, letter) for letter in self._wide) or (
                OTHER in self.those and any(letter not in alphabet for letter in table.endings(rest))
            )
            self._begun[rest] = known
        return known


class State:
    """One state of the library's parser, with everything that has been asked of it."""

    __slots__ = ("complete", "letters", "masks", "parser", "shortcut", "steps")

    def __init__(self, parser: CharacterLevelParser, letters: Letters) -> None:
        self.parser = parser
        self.letters = letters
        self.complete: bool = parser.can_end()
        self.shortcut = _limits(parser.shortcut_key())
        self.steps: dict[str, State] = {}
        self.masks: dict[bytes, Mask] = {}


class Machine:
    """The states of one automaton."""

    def __init__(self, table: Table, alphabet: str, parser: CharacterLevelParser) -> None:
        self.table = table
        self._alphabet = frozenset(alphabet)
        self._keys = Keys()
        self._states: dict[Hashable, State] = {}
        self._letters: dict[frozenset[str], Letters] = {}
        self.start = self._state(parser)

    def take(self, state: State, text: str, rest: bytes) -> State | None:
        """The state after `text`, if a character that begins with `rest` may follow; None where they are not let
        through."""
        here = state
        for character in text:
            following = here.steps.get(character) or self._step(here, character)
            if following is None:
                return None
            here = following
        return here if self._begins(here, rest) else None

    def mask(self, state: State, begun: bytes) -> Mask:
        """The tokens that may follow `state` where `begun` are the first bytes of the next character (or empty)."""
        mask = state.masks.get(begun)
        if mask is None:
            mask = self._resume(state, begun) if begun else self._begin(state)
            mask.setflags(write=False)
            state.masks[begun] = mask
        return mask

    def _begin(self, state: State) -> Mask:
        tokens: list[int] = []
        if state.shortcut is None:
            mask = empty_mask(self.table.vocabulary.width)
            self._collect(state, self.table.root, tokens)
        else:
            mask = self.table.free(*state.shortcut).copy()
            quote = self.table.root.children.get('"')
            if quote is not None and (closed := self.take(state, '"', b"")):
                self._collect(closed, quote, tokens)
        allow(mask, np.array(tokens, dtype=np.int64))
        return mask

    def _resume(self, state: State, begun: bytes) -> Mask:
        mask = empty_mask(self.table.vocabulary.width)
        tokens = [piece.token for piece in self.table.after(begun) if self.take(state, piece.text, piece.rest)]
        allow(mask, np.array(tokens, dtype=np.int64))
        return mask

    def _collect(self, state: State, node: Node, tokens: list[int]) -> None:
        tokens.extend(node.tokens)
        tokens.extend(token for token, rest in node.cut if self._begins(state, rest))
        children, steps = node.children, state.steps
        for character in _both(children, state.letters.those):
            following = steps.get(character) or self._step(state, character)
            if following is not None:
                self._collect(following, children[character], tokens)

    def _begins(self, state: State, rest: bytes) -> bool:
        return not rest or state.letters.begin(rest, self._alphabet, self.table)

    def _step(self, state: State, character: str) -> State | None:
        if character in state.letters.those:
            following = self._state(state.parser.add_character(character))
        elif character not in self._alphabet and OTHER in state.letters.those:
            following = self._state(state.parser.add_character(OTHER))
        else:
            return None
        state.steps[character] = following
        return following

    def _state(self, parser: CharacterLevelParser) -> State:
        key = self._keys.key(parser)
        if key is None:
            return self._new(parser)
        state = self._states.get(key)
        if state is None:
            if len(self._states) >= STATES:
                self._states.clear()
            state = self._states[key] = self._new(parser)
        return state

    def _new(self, parser: CharacterLevelParser) -> State:
        those = frozenset(parser.get_allowed_characters())
        letters = self._letters.get(those)
        if letters is None:
            letters = self._letters[those] = Letters(those)
        return State(parser, letters)


def _both(children: dict[str, Node], letters: frozenset[str]) -> Iterable[str]:
    if len(children) < len(letters):
        return [character for character in children if character in letters]
    return [character for character in letters if character in children]


def _limits(shortcut: object) -> tuple[int, int] | None:
    """How many more characters a JSON string must and may hold, where the library has its shortcut."""
    if not isinstance(shortcut, tuple) or shortcut[0] != "json_freetext":
        return None
    _, length, least, most = shortcut
    return max(0, least - length), most - length
