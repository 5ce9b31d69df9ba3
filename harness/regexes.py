"""The one regex subset that every engine takes, and the spelling of it that all engines read alike.

In the subset: literals, escapes, classes (`[a-z]`, `[^"]`, `\\d \\w \\s` and their opposites, all ASCII), `.` (anything
but a line feed), groups (their names mean nothing here), `|`, and `* + ? {m,n}`, greedy or lazy. Anchors (`^ $`, `\\A`,
`\\Z`) are allowed at the outer ends, where a full match makes them mean nothing. Anything else (lookaround, back
references, word boundaries, anchors inside, flags, atomic groups, possessive repeats) is `Unsupported` for every
engine, because libraries drop, reject or misread it each in its own way.

Python's own parser reads the pattern, so the tree means what `re.fullmatch(pattern, text, re.ASCII)` means.
"""

import re
import re._constants as op  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from functools import lru_cache
from typing import Any

import msgspec

from harness.errors import Unsupported
from harness.expression import LAST, Chars, Either, Expression, Repeat, chars, concat, negated
from harness.spelling import spell

FLAGS = {re.IGNORECASE: "i", re.LOCALE: "L", re.MULTILINE: "m", re.DOTALL: "s", re.VERBOSE: "x"}
START = (op.AT_BEGINNING, op.AT_BEGINNING_STRING)
END = (op.AT_END, op.AT_END_STRING)

DIGIT = chars([(0x30, 0x39)])
SPACE = chars([(0x09, 0x0D), (0x20, 0x20)])
WORD = chars([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
CATEGORIES = {
    op.CATEGORY_DIGIT: DIGIT,
    op.CATEGORY_NOT_DIGIT: negated(DIGIT),
    op.CATEGORY_SPACE: SPACE,
    op.CATEGORY_NOT_SPACE: negated(SPACE),
    op.CATEGORY_WORD: WORD,
    op.CATEGORY_NOT_WORD: negated(WORD),
}


class Classes(msgspec.Struct, frozen=True):
    """What the classes with a name (`\\d`) stand for, what they leave out of a class that is negated (`[^\\d]`), and
    what `.` is."""

    named: dict[Any, Chars]
    left_out: dict[Any, Chars]
    dot: Chars


ANYTHING = Repeat(Chars(((0x00, 0xD7FF), (0xE000, LAST))), 0, None)
LINE_ENDS = chars([(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)])
JSON_SPACE = chars(
    [(c, c) for c in (0x20, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)] + [(9, 13), (0x2000, 0x200A)]
)
JSON_SPACE_ANY = chars([*JSON_SPACE.ranges, (0x1C, 0x1F), (0x85, 0x85), (0xFEFF, 0xFEFF)])
"""What both ECMA and Python call white space, and what either does."""

PLAIN_CLASSES = Classes(CATEGORIES, CATEGORIES, negated(chars([(0x0A, 0x0A)])))
JSON_CLASSES = Classes(
    {
        op.CATEGORY_DIGIT: DIGIT,
        op.CATEGORY_WORD: WORD,
        op.CATEGORY_SPACE: JSON_SPACE,
        op.CATEGORY_NOT_SPACE: negated(JSON_SPACE_ANY),
    },
    {op.CATEGORY_SPACE: JSON_SPACE_ANY},
    negated(LINE_ENDS),
)


@lru_cache(maxsize=1024)
def tree(pattern: str) -> Expression:
    """What `pattern` matches as a whole. Raises `Unsupported` outside the subset; `pattern` is a regex of Python."""
    return _Reader(PLAIN_CLASSES).outer(_parsed(pattern))


@lru_cache(maxsize=1024)
def searched(pattern: str) -> Expression:
    """The texts in which JSON Schema finds `pattern` both as ECMA and as Python read it. Anchors count. Raises
    `Unsupported` outside the subset, and where a class means so much to one of the two that it is not worked out."""
    items = _parsed(pattern)
    starts, ends = items[:1] == [(op.AT, op.AT_BEGINNING)], items[-1:] == [(op.AT, op.AT_END)]
    inner = items[starts : len(items) - ends]
    found = _Reader(JSON_CLASSES).inner(inner)
    return concat(*([] if starts else [ANYTHING]), found, *([] if ends else [ANYTHING]))


def _parsed(pattern: str) -> list[tuple[Any, Any]]:
    try:
        parsed = parser.parse(pattern, re.ASCII)
    except re.error as error:
        raise Unsupported(f"{pattern!r} is not a regex of Python: {error}") from None
    if flags := "".join(letter for flag, letter in FLAGS.items() if parsed.state.flags & flag):
        raise Unsupported(f"the flag (?{flags}) is outside the regex subset")
    return list(parsed)


@lru_cache(maxsize=1024)
def portable(pattern: str) -> str:
    """`pattern` in the spelling that every engine reads alike. Raises `Unsupported` outside the subset."""
    return spell(tree(pattern))


class _Reader:
    """Turns what Python's parser says into a tree."""

    def __init__(self, classes: Classes) -> None:
        self._classes = classes

    def outer(self, items: list[tuple[Any, Any]]) -> Expression:
        """A whole pattern, at whose ends anchors mean nothing."""
        return self._concat(items, first=True, last=True)

    def inner(self, items: list[tuple[Any, Any]]) -> Expression:
        """A part without anchors."""
        return self._concat(items, first=False, last=False)

    def _concat(self, items: list[tuple[Any, Any]], first: bool, last: bool) -> Expression:
        """`first` and `last` say whether the sequence begins and ends with the text."""
        while first and items and items[0][0] is op.AT and items[0][1] in START:
            items = items[1:]
        while last and items and items[-1][0] is op.AT and items[-1][1] in END:
            items = items[:-1]
        ends = len(items) - 1
        return concat(*(self._one(*item, first and i == 0, last and i == ends) for i, item in enumerate(items)))

    def _one(self, kind: Any, value: Any, first: bool, last: bool) -> Expression:
        if kind is op.LITERAL:
            return chars([(value, value)])
        if kind is op.NOT_LITERAL:
            return negated(chars([(value, value)]))
        if kind is op.ANY:
            return self._classes.dot
        if kind is op.IN:
            return self._class(value)
        if kind is op.BRANCH:
            return Either(tuple(self._concat(list(branch), first, last) for branch in value[1]))
        if kind is op.SUBPATTERN:
            return self._group(value, first, last)
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT):
            least, most, item = value
            return Repeat(self.inner(list(item)), int(least), None if most is op.MAXREPEAT else int(most))
        raise Unsupported(_reason(kind, value))

    def _group(self, value: tuple[Any, int, int, Any], first: bool, last: bool) -> Expression:
        _, added, removed, items = value
        if added or removed:
            raise Unsupported("flags inside a group are outside the regex subset")
        return self._concat(list(items), first, last)

    def _class(self, members: list[tuple[Any, Any]]) -> Chars:
        inverse = members[0][0] is op.NEGATE
        named = self._classes.left_out if inverse else self._classes.named
        pairs: list[tuple[int, int]] = []
        for kind, value in members[1:] if inverse else members:
            if kind is op.LITERAL:
                pairs.append((value, value))
            elif kind is op.RANGE:
                pairs.append(value)
            elif value in named:
                pairs.extend(named[value].ranges)
            else:
                raise Unsupported(f"{value} means one thing in ECMA's regexes and another in Python's")
        return negated(chars(pairs)) if inverse else chars(pairs)


def _reason(kind: Any, value: Any) -> str:
    if kind is op.AT and value in (op.AT_BOUNDARY, op.AT_NON_BOUNDARY):
        return "word boundaries (\\b, \\B) are outside the regex subset"
    named = {
        op.AT: "an anchor inside the pattern is",
        op.ASSERT: "lookaround is",
        op.ASSERT_NOT: "lookaround is",
        op.FAILURE: "lookaround is",
        op.GROUPREF: "back references are",
        op.GROUPREF_EXISTS: "conditional groups are",
        op.ATOMIC_GROUP: "atomic groups are",
        op.POSSESSIVE_REPEAT: "possessive repeats are",
    }
    return f"{named.get(kind, str(kind) + ' is')} outside the regex subset"
