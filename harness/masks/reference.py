"""The slow, plain engine that the fast ones are checked against.

It takes a token exactly where the text and the token's bytes are the beginning of some text that the constraint allows,
by walking a tree of the vocabulary's bytes along the states of `harness.masks.derivative`. Labels, regexes of the
subset and grammars without left recursion are all taken; of JSON Schema what `harness.masks.json_rules` describes.
"""

from functools import lru_cache

import numpy as np

from harness import __version__
from harness.constraint import Constraint, Grammar, JsonSchema, Labels, Regex
from harness.expression import Either, literal
from harness.grammar import Rules, parse
from harness.mask import Automaton, Compiler, Mask, Matcher, allow, empty_mask
from harness.masks.derivative import Derivatives, State
from harness.masks.json_rules import json_rules
from harness.masks.stopping import Ends, Stopping
from harness.masks.utf8 import length, reach
from harness.regexes import tree
from harness.vocabulary import Vocabulary

KEPT_MASKS = 2048


class Engine:
    """The reference as a `harness.mask.MaskEngine`."""

    name = "reference"

    def version(self) -> str:
        return __version__

    def compiler(self, vocabulary: Vocabulary) -> Compiler:
        return _Compiler(vocabulary)


class Node:
    """A place in the tree of all tokens: the bytes that go on from here, and the tokens that end here."""

    __slots__ = ("children", "tokens")

    def __init__(self) -> None:
        self.children: dict[int, Node] = {}
        self.tokens: list[int] = []

    def add(self, spelling: bytes, token: int) -> None:
        """Let `token` end where `spelling` leads from here."""
        node = self
        for byte in spelling:
            if byte not in node.children:
                node.children[byte] = Node()
            node = node.children[byte]
        node.tokens.append(token)


Place = tuple[State, bytes]
"""Where a text stands: the state after its whole characters, and the bytes of a character that is not whole."""


class _Compiler:
    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._ends = Ends(vocabulary)
        self._root = Node()
        for token in self._ends.spelling:
            self._root.add(vocabulary.tokens[token] or b"", token)

    def compile(self, constraint: Constraint) -> Automaton:
        return _Automaton(Derivatives(_rules(constraint)), self._vocabulary, self._ends, self._root)


def _rules(constraint: Constraint) -> Rules:
    match constraint:
        case Labels(labels=labels):
            return {"root": Either(tuple(literal(label) for label in labels))}
        case Regex(pattern=pattern):
            return {"root": tree(pattern)}
        case JsonSchema(schema=schema, whitespace=whitespace):
            return json_rules(schema, flexible=whitespace == "flexible")
        case Grammar(ebnf=ebnf):
            return parse(ebnf)


class _Automaton:
    def __init__(self, derivatives: Derivatives, vocabulary: Vocabulary, ends: Ends, root: Node) -> None:
        self._derivatives = derivatives
        self._vocabulary = vocabulary
        self._ends = ends
        self._root = root
        self.mask = lru_cache(maxsize=KEPT_MASKS)(self._mask)

    def matcher(self) -> Matcher:
        return Stopping(_Text(self, (self._derivatives.start, b"")), self._ends)

    def after(self, place: Place, token: int) -> Place | None:
        """Where the text stands after `token`; None where no allowed text begins so."""
        now: Place | None = place
        for byte in self._vocabulary.tokens[token] or b"":
            now = None if now is None else self._byte(now, byte)
        return now

    def _mask(self, place: Place) -> Mask:
        mask = empty_mask(self._vocabulary.width)
        found: list[int] = []
        todo = [(self._root, place)]
        while todo:
            node, now = todo.pop()
            found.extend(node.tokens)
            for byte, child in node.children.items():
                if (then := self._byte(now, byte)) is not None:
                    todo.append((child, then))
        allow(mask, np.array(found, dtype=np.int64))
        return mask

    def _byte(self, place: Place, byte: int) -> Place | None:
        state, begun = place
        if byte < 0x80 and not begun:
            then = self._derivatives.step(state, byte)
            return None if then is None else (then, b"")
        begun += bytes([byte])
        low, high = reach(begun)
        if low > high:
            return None
        if len(begun) == length(begun[0]):
            then = self._derivatives.step(state, low)
            return None if then is None else (then, b"")
        possible = any(low <= last and first <= high for ranges, _ in state.heads for first, last in ranges)
        return (state, begun) if possible else None


class _Text:
    def __init__(self, automaton: _Automaton, place: Place) -> None:
        self._automaton = automaton
        self._place = place

    def fill(self, mask: Mask) -> None:
        np.copyto(mask, self._automaton.mask(self._place))

    def take(self, token: int) -> bool:
        then = self._automaton.after(self._place, token)
        if then is not None:
            self._place = then
        return then is not None

    def complete(self) -> bool:
        state, begun = self._place
        return state.complete and not begun


ENGINE = Engine()
