"""The tokens of a vocabulary as a tree of characters, in a form to walk through and in one to scan whole.

Places are numbers and their children dicts of numbers, so that Python's garbage collector has nothing to look at: a
hundred thousand objects would cost half a second each time it looks at all.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from harness.masks.lm_format_enforcer.pieces import Piece

SPACES = " \t\n\r"
"""White space of JSON."""

ROOT = 0


@dataclass(frozen=True, slots=True)
class Spaces:
    """All places whose text is nothing but some spaces, as one: `after` leads from them to the places behind each other
    character."""

    tokens: tuple[int, ...]
    cut: tuple[tuple[int, bytes], ...]
    after: dict[str, tuple[int, ...]]


class Tree:
    """All places, ordered by depth, so that a parent comes before its children.

    To walk: `children[place]` by character, `tokens[place]` the tokens that end there, `cut[place]` those that end
    there but for the first bytes of one more character (places without any are left out).
    To scan: `parent` and `letter` (a number in `letters`) lead to each place, `levels` are the places of one depth,
    `token` and `token_place` are whole tokens and where they end. `leading` is how many spaces a place's text begins
    with, `longest` its longest run of spaces after that; `quotes` are the places of which a quote is a child.
    """

    def __init__(self, pieces: Iterable[Piece]) -> None:
        pieces = list(pieces)
        texts = sorted({piece.text[:size] for piece in pieces for size in range(len(piece.text) + 1)}, key=len)
        place = {text: i for i, text in enumerate(texts)}
        self.letters = sorted({text[-1] for text in texts if text})
        number = {letter: i for i, letter in enumerate(self.letters)}
        parents = [place[text[:-1]] for text in texts]
        self.children = _children(texts, parents)
        self.tokens = _tokens(pieces, place)
        self.cut = _cut(pieces, place)
        self.parent = np.array(parents, dtype=np.int64)
        self.letter = np.array([number.get(text[-1:], 0) for text in texts], dtype=np.int64)
        self.levels = _levels(texts)
        self.token = np.array([token for tokens in self.tokens for token in tokens], dtype=np.int64)
        self.token_place = np.repeat(np.arange(len(texts)), [len(tokens) for tokens in self.tokens])
        self.leading = np.array([len(text) - len(text.lstrip(SPACES)) for text in texts])
        self.longest = np.array([_run(text.lstrip(SPACES)) for text in texts])
        self.quotes = [i for i, children in enumerate(self.children) if '"' in children]
        self._blank = _blank(texts)
        self._spaces: dict[tuple[int, int], Spaces] = {}

    def spaces(self, least: int, most: int) -> "Spaces":
        """The places of `least` to `most` spaces, as one."""
        if (least, most) not in self._spaces:
            places = [place for places in self._blank[least : most + 1] for place in places]
            self._spaces[least, most] = self._merged(places)
        return self._spaces[least, most]

    def _merged(self, places: list[int]) -> "Spaces":
        after: dict[str, tuple[int, ...]] = {}
        for place in places:
            for letter, child in self.children[place].items():
                if letter not in SPACES:
                    after[letter] = (*after.get(letter, ()), child)
        tokens = tuple(token for place in places for token in self.tokens[place])
        return Spaces(tokens, tuple(cut for place in places for cut in self.cut.get(place, ())), after)

    def text(self, place: int) -> str:
        """What leads to `place`."""
        return self.text(int(self.parent[place])) + self.letters[self.letter[place]] if place else ""

    def scan(self, first: int, steps: NDArray[np.int32], columns: NDArray[np.int64]) -> NDArray[np.int32]:
        """The state at each place of an automaton that starts in `first`: `steps[state, column]` is the next state,
        `columns[letter]` a letter's column; the last state is the one from which nothing follows."""
        states = np.empty(len(self.parent), dtype=np.int32)
        states[ROOT] = first
        dead = len(steps) - 1
        for level in self.levels:
            above = states[self.parent[level]]
            if not (above != dead).any():
                states[level.start :] = dead
                break
            states[level] = steps[above, columns[self.letter[level]]]
        return states


def _children(texts: list[str], parents: list[int]) -> list[dict[str, int]]:
    nothing: dict[str, int] = {}
    children = [nothing] * len(texts)
    for i, text in enumerate(texts[1:], start=1):
        if children[parents[i]] is nothing:
            children[parents[i]] = {}
        children[parents[i]][text[-1]] = i
    return children


def _tokens(pieces: list[Piece], place: dict[str, int]) -> list[tuple[int, ...]]:
    tokens: list[tuple[int, ...]] = [()] * len(place)
    for piece in pieces:
        if not piece.rest:
            tokens[place[piece.text]] += (piece.token,)
    return tokens


def _cut(pieces: list[Piece], place: dict[str, int]) -> dict[int, tuple[tuple[int, bytes], ...]]:
    cut: dict[int, tuple[tuple[int, bytes], ...]] = {}
    for piece in pieces:
        if piece.rest:
            cut[place[piece.text]] = (*cut.get(place[piece.text], ()), (piece.token, piece.rest))
    return cut


def _blank(texts: list[str]) -> list[list[int]]:
    """The places of no spaces, of one, and so on."""
    blank = [(len(text), place) for place, text in enumerate(texts) if not text.strip(SPACES)]
    return [[place for size, place in blank if size == n] for n in range(max(blank)[0] + 1)]


def _levels(texts: list[str]) -> list[slice]:
    """The places of each depth, from 1 on."""
    depth = np.array([len(text) for text in texts])
    return [slice(low, high) for low, high in pairwise(np.searchsorted(depth, np.arange(1, depth[-1] + 2)).tolist())]


def _run(text: str) -> int:
    """The longest run of spaces in `text`."""
    longest = here = 0
    for character in text:
        here = here + 1 if character in SPACES else 0
        longest = max(longest, here)
    return longest
