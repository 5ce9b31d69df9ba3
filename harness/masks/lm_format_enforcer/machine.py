"""One constraint on one vocabulary: the tokens that each state lets through."""

from collections.abc import Iterable

from lmformatenforcer import CharacterLevelParser, RegexParser

from harness.mask import Mask, allows
from harness.masks.lm_format_enforcer.dfa import MANY, Dfa
from harness.masks.lm_format_enforcer.letters import LetterSets
from harness.masks.lm_format_enforcer.places import ALL_SPACES, between, regex, spaces_before, top
from harness.masks.lm_format_enforcer.states import Limits, State, States
from harness.masks.lm_format_enforcer.table import Table
from harness.masks.lm_format_enforcer.tree import ROOT, SPACES, Spaces
from harness.masks.whitespace import MOST


class Machine:
    """What a constraint lets through. It answers alike at any time; what it remembers is bounded by the table's
    memory. Not for several threads at once."""

    def __init__(self, table: Table, alphabet: str, parser: CharacterLevelParser, spaces: bool) -> None:
        self.table = table
        self._sets = LetterSets(alphabet, table.pieces)
        self._states = States(parser, self._sets, spaces, table.memory)
        self._dfas: dict[int, Dfa] = {}

    def start(self) -> State:
        """The state before the text."""
        self._states.memory.used(self._states)
        return self._states.start

    def take(self, state: State, begun: bytes, token: int, text: str, rest: bytes) -> State | None:
        """The state after `token`, with which `begun` becomes `text` and the first bytes `rest` of one more character;
        None where the mask does not allow it."""
        if begun or state.string_limits() is None:
            return self._follow(state, text, rest)
        return self._states.push(state, text) if allows(self.mask(state, begun), token) else None

    def mask(self, state: State, begun: bytes) -> Mask:
        """The tokens that may follow `state` where `begun` are the first bytes of the next character (or empty). Read
        only."""
        mask = state.kept(begun)
        if mask is None:
            mask = self._resumed(state, begun) if begun else self._made(state)
            mask.setflags(write=False)
            self._states.memory.add(self._states, mask.nbytes)
            state.keep(begun, mask)
        return mask

    def _made(self, state: State) -> Mask:
        if (limits := state.string_limits()) is not None:
            return self._in_string(state, limits)
        if len(state.letters.those) > MANY and (said := regex(state.parser)) is not None:
            return self._in_regex(state, said)
        if between(state.parser) and state.letters.those >= ALL_SPACES:
            return self.table.mask(self._between(state))
        return self.table.mask(self._collect(state, ROOT, []))

    def _resumed(self, state: State, begun: bytes) -> Mask:
        pieces = self.table.pieces.after(begun)
        return self.table.mask([p.token for p in pieces if self._follow(state, p.text, p.rest) is not None])

    def _in_string(self, state: State, limits: Limits) -> Mask:
        """The library's shortcut, and the tokens that begin with the quote that ends the string."""
        mask = self.table.string_mask(*limits)
        quote = self.table.tree.children[ROOT].get('"')
        closed = self._states.follow(state, '"')
        if quote is None or closed is None:
            return mask.copy()
        return mask | self.table.mask(self._collect(closed, quote, []))

    def _in_regex(self, state: State, said: RegexParser) -> Mask:
        string = top(state.parser)
        dfa = self._dfas.get(id(said.context))
        if dfa is None:
            dfa = Dfa(said, self.table.tree, self._sets, string is not None, MOST)
            self._dfas[id(said.context)] = dfa
        if string is None:
            return self.table.mask(dfa.tokens(dfa.reach(said.current_state)))
        reach = dfa.reach(said.current_state, not string.parsed_string, spaces_before(state.parser))
        tokens: list[int] = []
        closed: State | None = None
        for place in dfa.ends(reach):
            closed = closed or self._states.follow(state, self.table.tree.text(place) + '"')
            if closed is not None:  # the same state wherever the string ends: its text matters no more
                self._collect(closed, self.table.tree.children[place]['"'], tokens)
        return self.table.mask(dfa.tokens(reach)) | self.table.mask(tokens)

    def _follow(self, state: State, text: str, rest: bytes) -> State | None:
        end = self._states.follow(state, text)
        return end if end is not None and end.letters.begin(rest) else None

    def _between(self, state: State) -> list[int]:
        """All tokens that `state` lets through between two tokens of JSON. Which spaces come next does not matter
        there, and what follows one of them follows more, up to how many there may be."""
        tree = self.table.tree
        tokens = self._behind(state, tree.spaces(0, 0))
        if (spaced := self._states.follow(state, SPACES[0])) is not None:
            tokens += self._behind(spaced, tree.spaces(1, MOST - spaces_before(state.parser)))
        return tokens

    def _behind(self, state: State, spaces: Spaces) -> list[int]:
        tokens = [*spaces.tokens, *state.letters.cut(spaces.cut)]
        for character in state.letters.those & spaces.after.keys():
            if (following := state.steps.get(character) or self._states.step(state, character)) is not None:
                for place in spaces.after[character]:
                    self._collect(following, place, tokens)
        return tokens

    def _collect(self, state: State, place: int, tokens: list[int]) -> list[int]:
        """Add to `tokens` those at and below `place` that `state` lets through."""
        tree, step = self.table.tree, self._states.step
        ahead = [(state, place)]
        while ahead:
            state, place = ahead.pop()
            tokens += tree.tokens[place]
            if place in tree.cut:
                tokens += state.letters.cut(tree.cut[place])
            children = tree.children[place]
            for character in _both(children, state.letters.those):
                following = state.steps.get(character) or step(state, character)
                if following is not None:
                    ahead.append((following, children[character]))
        return tokens


def _both(children: dict[str, int], letters: frozenset[str]) -> Iterable[str]:
    if len(children) < len(letters):
        return [character for character in children if character in letters]
    return [character for character in letters if character in children]
