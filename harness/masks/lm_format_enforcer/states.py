"""States of a parser, and the tokens that each lets through."""

import numpy as np
from lmformatenforcer import CharacterLevelParser

from harness.mask import Mask, allow, empty_mask
from harness.masks.lm_format_enforcer.table import OTHER, Node, Table


class State:
    """One state of the library's parser, with everything that has been asked of it."""

    __slots__ = ("characters", "complete", "masks", "parser", "steps")

    def __init__(self, parser: CharacterLevelParser) -> None:
        self.parser = parser
        self.characters = frozenset(parser.get_allowed_characters())
        self.complete: bool = parser.can_end()
        self.steps: dict[str, State] = {}
        self.masks: dict[bytes, Mask] = {}


class Machine:
    """One constraint on one vocabulary."""

    def __init__(self, table: Table, alphabet: str, parser: CharacterLevelParser) -> None:
        self.table = table
        self.alphabet = frozenset(alphabet)
        self.start = State(parser)

    def step(self, state: State, character: str) -> State | None:
        known = state.steps.get(character)
        if known is not None:
            return known
        if character not in state.characters:
            if character in self.alphabet or OTHER not in state.characters:
                return None
            following = self.step(state, OTHER)
        else:
            following = State(state.parser.add_character(character))
        if following is not None:
            state.steps[character] = following
        return following

    def run(self, state: State, text: str) -> State | None:
        here: State | None = state
        for character in text:
            if here is None:
                return None
            here = self.step(here, character)
        return here

    def begins(self, state: State, rest: bytes) -> bool:
        """Whether some character that may come next begins with the bytes `rest`, and can be spelled to its end."""
        if not rest:
            return True
        if OTHER not in state.characters and not any(c.encode().startswith(rest) for c in state.characters):
            return False
        return any(self.takes(state, piece.text, piece.rest) for piece in self.table.after(rest))

    def takes(self, state: State, text: str, rest: bytes) -> bool:
        end = self.run(state, text)
        return end is not None and self.begins(end, rest)

    def mask(self, state: State, begun: bytes) -> Mask:
        mask = state.masks.get(begun)
        if mask is None:
            mask = state.masks[begun] = empty_mask(self.table.vocabulary.width)
            tokens: list[int] = []
            if begun:
                tokens.extend(p.token for p in self.table.after(begun) if self.takes(state, p.text, p.rest))
            else:
                self._collect(state, self.table.root, tokens, state.parser.shortcut_key())
            allow(mask, np.array(tokens, dtype=np.int64))
            mask.setflags(write=False)
        return mask

    def _collect(self, state: State, node: Node, tokens: list[int], shortcut: object) -> None:
        tokens.extend(node.tokens)
        tokens.extend(token for token, rest in node.cut if self.begins(state, rest))
        if isinstance(shortcut, tuple) and shortcut[0] == "json_freetext":
            _, now, least, most = shortcut
            tokens.extend(self.table.free(least - now, most - now))
            explore = [character for character in ('"',) if character in state.characters]
        else:
            explore = [c for c in node.children if c in state.characters or c not in self.alphabet]
        for character in explore:
            child = node.children.get(character)
            following = self.step(state, character)
            if child is not None and following is not None:
                self._collect(following, child, tokens, None)
