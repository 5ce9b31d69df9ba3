"""Regexes written out from trees, in the one spelling that all engines read alike.

Only plain groups, classes of single characters and ranges, and `* + ? {m,n}` are used; no class by name, no escape that
a parser could take for more than the character it stands for.
"""

from harness.errors import Unsupported
from harness.expression import LAST, Chars, Concat, Either, Expression, Ranges, Repeat, Rule, negated


def spell(expression: Expression, negate: bool = True) -> str:
    """A regex for a tree without rules; `negate` writes classes that reach to the last character as `[^...]`. Raises
    `Unsupported` where nothing could match it."""
    match expression:
        case Chars(ranges=ranges):
            return _spell_chars(ranges, negate)
        case Concat(items=items):
            return "".join(_spell_part(item, negate) for item in items)
        case Either(items=items):
            return _spell_either(items, negate)
        case Repeat(item=item, least=least, most=most):
            return _spell_repeat(item, least, most, negate)
        case Rule(name=name):
            raise Unsupported(f"a regex cannot hold the rule {name!r}")


def _spell_part(item: Expression, negate: bool) -> str:
    return f"({spell(item, negate)})" if isinstance(item, Either) else spell(item, negate)


def _spell_either(items: tuple[Expression, ...], negate: bool) -> str:
    """Some parsers take no empty alternative, so `a|` is written `(a)?`."""
    filled = [text for text in (spell(item, negate) for item in items) if text]
    joined = "|".join(filled)
    if len(filled) == len(items):
        return joined
    return f"({joined})?" if filled else ""


def _spell_repeat(item: Expression, least: int, most: int | None, negate: bool) -> str:
    inner = spell(item, negate)
    if not inner or most == 0:
        return ""
    body = inner if isinstance(item, Chars) else f"({inner})"
    match least, most:
        case 0, None:
            return f"{body}*"
        case 1, None:
            return f"{body}+"
        case _, None:
            return f"{body}{{{least},}}"
        case 0, 1:
            return f"{body}?"
        case 1, 1:
            return f"({inner})"
        case _ if least == most:
            return f"{body}{{{least}}}"
        case _:
            return f"{body}{{{least},{most}}}"


def _spell_chars(ranges: Ranges, negate: bool) -> str:
    if not ranges:
        raise Unsupported("a character class that matches nothing")
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _escaped(ranges[0][0], r"\.^$*+?{}[]|()")
    if negate and ranges[-1][1] == LAST and (left_out := negated(Chars(ranges)).ranges):
        return f"[^{_spell_ranges(left_out)}]"
    return f"[{_spell_ranges(ranges)}]"


def _spell_ranges(ranges: Ranges) -> str:
    special = r"\^[]-"
    return "".join(
        _escaped(low, special) + ("" if low == high else ("-" if high > low + 1 else "") + _escaped(high, special))
        for low, high in ranges
    )


def _escaped(code: int, special: str) -> str:
    character = chr(code)
    if character in special:
        return "\\" + character
    if named := {"\n": r"\n", "\r": r"\r", "\t": r"\t"}.get(character):
        return named
    return f"\\x{code:02x}" if code < 0x20 or code == 0x7F else character
