"""The pieces of JSON text, as expressions: strings, keys, and values written out."""

import json
from collections.abc import Iterable

from harness.expression import (
    Chars,
    Concat,
    Either,
    Expression,
    Ranges,
    Repeat,
    chars,
    concat,
    either,
    literal,
    negated,
)
from harness.masks.whitespace import CHARACTERS, MOST

QUOTE = literal('"')
PLAIN = negated(chars([(0x00, 0x1F), (0x22, 0x22), (0x5C, 0x5C)]))
"""The characters that stand in a JSON string as they are."""

SHORT = {0x22: '"', 0x5C: "\\", 0x2F: "/", 0x08: "b", 0x0C: "f", 0x0A: "n", 0x0D: "r", 0x09: "t"}
HEX = chars([(0x30, 0x39), (0x41, 0x46), (0x61, 0x66)])
NOT_D = chars([(0x30, 0x39), (0x41, 0x43), (0x45, 0x46), (0x61, 0x63), (0x65, 0x66)])
D = chars([(0x44, 0x44), (0x64, 0x64)])
BY_NUMBER = concat(literal("\\u"), Either((concat(NOT_D, HEX, HEX, HEX), concat(D, chars([(0x30, 0x37)]), HEX, HEX))))
"""`\\uXXXX` for any character but halves of a surrogate pair."""

UNIT = Either((PLAIN, concat(literal("\\"), chars((ord(c), ord(c)) for c in SHORT.values())), BY_NUMBER))
"""One character of a string."""


def space(flexible: bool) -> Expression:
    """What may stand between JSON tokens."""
    return Repeat(chars((ord(c), ord(c)) for c in CHARACTERS), 0, MOST) if flexible else Concat(())


def string(least: int, most: int | None) -> Expression:
    """A string of `least` to `most` characters."""
    return concat(QUOTE, Repeat(UNIT, least, most), QUOTE)


def quoted(content: Expression) -> Expression:
    """A string that holds what `content` describes, each character plain or, where it must be, as a short escape."""
    return concat(QUOTE, _escaped(content), QUOTE)


def key_but(names: Iterable[str]) -> Expression:
    """Any key but `names`; where there are names, characters are written plainly, so that none is spelt by escapes."""
    listed = tuple(names)
    return concat(QUOTE, _other_than(listed), QUOTE) if listed else string(0, None)


def value(wanted: object, gap: Expression) -> Expression:
    """`wanted` written out as JSON, with `gap` between its tokens and its characters unescaped."""
    match wanted:
        case dict():
            members = [concat(value(k, gap), gap, literal(":"), gap, value(v, gap)) for k, v in wanted.items()]
            return enclosed("{", members, "}", gap)
        case list():
            return enclosed("[", [value(item, gap) for item in wanted], "]", gap)
        case _:
            return literal(json.dumps(wanted, ensure_ascii=False))


def enclosed(opening: str, items: list[Expression], closing: str, gap: Expression) -> Expression:
    """`items` with commas between them, in brackets."""
    parts: list[Expression] = [literal(opening), gap]
    for number, item in enumerate(items):
        parts.extend([item, gap] if number == 0 else [literal(","), gap, item, gap])
    return concat(*parts, literal(closing))


def _escaped(content: Expression) -> Expression:
    match content:
        case Chars(ranges=ranges):
            return _escaped_character(ranges)
        case Concat(items=items):
            return concat(*map(_escaped, items))
        case Either(items=items):
            return Either(tuple(map(_escaped, items)))
        case Repeat(item=item, least=least, most=most):
            return Repeat(_escaped(item), least, most)
        case _:
            return content


def _escaped_character(ranges: Ranges) -> Expression:
    meant = Chars(ranges)
    plain = both(meant, PLAIN)
    short = [literal("\\" + letter) for code, letter in SHORT.items() if both(meant, chars([(code, code)])).ranges]
    return either([plain, *short])


def both(first: Chars, second: Chars) -> Chars:
    """One character out of both."""
    return negated(chars((*negated(first).ranges, *negated(second).ranges)))


def _other_than(names: tuple[str, ...]) -> Expression:
    """Any plain text but `names`, character by character: it leaves them all, or ends or goes on where none does."""
    firsts = sorted({name[0] for name in names if name})
    leaves = concat(both(PLAIN, negated(chars((ord(c), ord(c)) for c in firsts))), Repeat(PLAIN, 0, None))
    follows = [concat(literal(c), _other_than(tuple(n[1:] for n in names if n[:1] == c))) for c in firsts]
    ends = [] if "" in names else [Concat(())]
    return Either((*ends, leaves, *follows))
