"""Texts described by small trees: the form in which regexes, grammars and JSON schemas reach our own recognisers."""

from collections.abc import Iterable
from collections.abc import Sequence as Items

import msgspec

LAST = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)
"""Code points that no UTF-8 text holds."""

Ranges = tuple[tuple[int, int], ...]
"""Code points, as ascending ranges with both ends inside, none touching the next, without surrogates."""


class Chars(msgspec.Struct, frozen=True):
    """One character out of `ranges`; of none where they are empty."""

    ranges: Ranges


class Concat(msgspec.Struct, frozen=True):
    """All of these, one after the other; the empty text where there are none."""

    items: tuple["Expression", ...]


class Either(msgspec.Struct, frozen=True):
    """One of these; nothing at all where there are none."""

    items: tuple["Expression", ...]


class Repeat(msgspec.Struct, frozen=True):
    """`least` to `most` of these; `most` None means without end."""

    item: "Expression"
    least: int
    most: int | None


class Rule(msgspec.Struct, frozen=True):
    """What the rule `name` of a grammar derives."""

    name: str


Expression = Chars | Concat | Either | Repeat | Rule


def chars(pairs: Iterable[tuple[int, int]]) -> Chars:
    """One character out of `pairs`, in any order, overlapping or not."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(_without_surrogates(pairs)):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return Chars(tuple(merged))


def negated(wanted: Chars) -> Chars:
    """One character that is not out of `wanted`."""
    edges = [-1, *(edge for low, high in wanted.ranges for edge in (low, high)), LAST + 1]
    return chars((low + 1, high - 1) for low, high in zip(edges[::2], edges[1::2], strict=True) if low + 1 < high)


def literal(text: str) -> Expression:
    """`text` alone."""
    return concat(*(Chars(((ord(character), ord(character)),)) for character in text))


def option(item: Expression) -> Repeat:
    """`item`, or the empty text."""
    return Repeat(item, 0, 1)


def concat(*items: Expression) -> Expression:
    """All of these, one after the other."""
    return items[0] if len(items) == 1 else Concat(items)


def either(items: Items[Expression]) -> Expression:
    """One of these."""
    return items[0] if len(items) == 1 else Either(tuple(items))


def _without_surrogates(pairs: Iterable[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    low_end, high_end = SURROGATES
    for low, high in pairs:
        if low < low_end:
            yield low, min(high, low_end - 1)
        if high > high_end:
            yield max(low, high_end + 1), high


def rules_in(expression: Expression) -> frozenset[str]:
    """The names of the rules that stand in `expression`."""
    match expression:
        case Chars():
            return frozenset()
        case Concat(items=items) | Either(items=items):
            return frozenset().union(*map(rules_in, items))
        case Repeat(item=item):
            return rules_in(item)
        case Rule(name=name):
            return frozenset([name])


def beyond_empty(expression: Expression) -> tuple[Expression, bool]:
    """The same texts but the empty one, and whether the empty one was among them."""
    match expression:
        case Concat(items=(first, *rest)):
            head, head_empty = beyond_empty(first)
            if not head_empty:
                return expression, False
            tail, tail_empty = beyond_empty(Concat(tuple(rest)))
            return Either((concat(head, *rest), tail)), tail_empty
        case Concat():
            return Either(()), True
        case Either(items=items):
            parts = [beyond_empty(item) for item in items]
            return Either(tuple(part for part, _ in parts)), any(empty for _, empty in parts)
        case Repeat(item=item, least=least, most=most) if most != 0:
            filled, empty = beyond_empty(item)
            if least and not empty:
                return expression, False
            more = Repeat(item, max(least - 1, 0), None if most is None else most - 1)
            return concat(filled, more), True
        case Repeat():
            return Either(()), True
        case _:
            return expression, False
