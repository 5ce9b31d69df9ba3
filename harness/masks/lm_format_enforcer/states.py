"""States of one constraint's parser, told apart by their keys, so that the library answers each question once.

What a state's next characters are, whether the text may end, where a character leads: the answers stay with the state,
and the next walk is a walk through dicts.
"""

import weakref
from typing import Literal

from lmformatenforcer import CharacterLevelParser

from harness.mask import Mask
from harness.masks.lm_format_enforcer.keys import Keys
from harness.masks.lm_format_enforcer.letters import Letters, LetterSets
from harness.masks.lm_format_enforcer.memory import Memory
from harness.masks.lm_format_enforcer.places import ALIKE, APART, alike, between, free_string
from harness.masks.lm_format_enforcer.spelling import enumerated
from harness.masks.lm_format_enforcer.tree import SPACES

STATE_BYTES = 1_500
"""What a state costs without its masks: its parser, its steps, its place in the tables (measured; see the decision)."""


Limits = tuple[int, int]


class State:
    """One state of the library's parser, with everything that has been asked of it: where each character leads
    (`steps`), where all others lead that are alike (`rest`), and the masks."""

    __slots__ = ("_free", "_limits", "letters", "mask", "masks", "parser", "rest", "steps")

    def __init__(self, parser: CharacterLevelParser, letters: Letters) -> None:
        self.parser = parser
        self.letters = letters
        self.steps: dict[str, State] = {}
        self.rest: State | None = None
        self.mask: Mask | None = None
        self.masks: dict[bytes, Mask] | None = None
        self._free: bool | None = None
        self._limits: Limits | Literal["unknown"] | None = "unknown"

    def kept(self, begun: bytes) -> Mask | None:
        """The mask where `begun` are the first bytes of the next character, if it has been made."""
        return self.mask if not begun else (self.masks or {}).get(begun)

    def keep(self, begun: bytes, mask: Mask) -> None:
        """Keep it."""
        if not begun:
            self.mask = mask
        elif self.masks is None:
            self.masks = {begun: mask}
        else:
            self.masks[begun] = mask

    def empty(self) -> None:
        """Forget what can be asked again."""
        self.steps.clear()
        self.rest = self.mask = self.masks = None

    def free(self) -> bool:
        """Whether all characters but those of `APART` lead to the same state."""
        if self._free is None:
            self._free = free_string(self.parser)
        return self._free

    def string_limits(self) -> "Limits | None":
        """How many more characters a JSON string must and may hold, where the library takes whole tokens unseen."""
        if self._limits == "unknown":
            self._limits = _limits(self.parser.shortcut_key())
        return self._limits


class States:
    """The states of one constraint. Without `spaces` no white space stands between JSON tokens."""

    def __init__(self, parser: CharacterLevelParser, sets: LetterSets, spaces: bool, memory: Memory) -> None:
        self._sets = sets
        self._spaces = spaces
        self._keys = Keys()
        self._known: dict[int, State] = {}
        self.memory = memory
        memory.enter(self)
        weakref.finalize(self, _empty, self._known).atexit = False
        self.start = self._new(parser)

    def forget(self) -> None:
        """Drop everything; sequences at work go on from where they are."""
        _empty(self._known)
        self._keys.forget()
        self._sets.forget()
        self.start.empty()

    def follow(self, state: State, text: str) -> State | None:
        """The state after `text`; None where it is not let through."""
        here = state
        for character in text:
            following = here.steps.get(character) or self.step(here, character)
            if following is None:
                return None
            here = following
        return here

    def step(self, state: State, character: str) -> State | None:
        """The state after `character`; None where it is not let through."""
        told = state.letters.stand_in(character)
        if told is None:
            return None
        if told not in APART and state.free():
            if state.rest is None:
                state.rest = self._state(state.parser.add_character(told))
            return state.rest
        following = self._state(state.parser.add_character(told))
        state.steps.update(
            dict.fromkeys(alike(state.parser, told, state.letters.those) if told in ALIKE else told, following)
        )
        state.steps[character] = following
        return following

    def push(self, state: State, text: str) -> State:
        """The state after `text` where the library takes it unseen (its shortcut in strings lets more spaces through
        than its parser does)."""
        here = state
        for character in text:
            following = here.steps.get(character) or self.step(here, character)
            here = following or self._state(here.parser.add_character(character))
        return here

    def _state(self, parser: CharacterLevelParser) -> State:
        parser = enumerated(parser) or parser
        key = self._keys.state(parser)
        state = self._known.get(key)
        if state is None:
            before = self._sets.made_bytes
            state = self._known[key] = self._new(parser)
            self.memory.add(self, STATE_BYTES + self._sets.made_bytes - before)
        return state

    def _new(self, parser: CharacterLevelParser) -> State:
        without = "" if self._spaces or not between(parser) else SPACES
        return State(parser, self._sets.of(parser.get_allowed_characters(), without))


def _empty(states: dict[int, State]) -> None:
    """Take the states apart, which lead to each other in circles and would wait for Python's collector."""
    for state in states.values():
        state.empty()
    states.clear()


def _limits(shortcut: object) -> Limits | None:
    if not isinstance(shortcut, tuple) or shortcut[0] != "json_freetext":
        return None
    _, length, least, most = shortcut
    return max(0, least - length), most - length
