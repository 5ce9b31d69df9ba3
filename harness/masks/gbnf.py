"""Grammars written out in GBNF, in the plain spelling that libraries read alike."""

from collections.abc import Mapping

from harness.expression import Chars, Concat, Either, Expression, Ranges, Repeat, Rule


def gbnf(rules: Mapping[str, Expression]) -> str:
    """The rules, `root` first, as text."""
    names = ["root", *(name for name in rules if name != "root")]
    return "\n".join(f"{name} ::= {write(rules[name])}" for name in names)


def write(expression: Expression) -> str:
    """An expression as the right side of a rule."""
    match expression:
        case Chars(ranges=ranges):
            return _class(ranges)
        case Concat(items=items):
            return " ".join(map(_part, items)) or '""'
        case Either(items=items):
            return " | ".join(map(_part, items))
        case Repeat(item=item, least=least, most=most):
            return f"({write(item)}){_times(least, most)}"
        case Rule(name=name):
            return name


def _part(item: Expression) -> str:
    return f"({write(item)})" if isinstance(item, Either) else write(item)


def _times(least: int, most: int | None) -> str:
    match least, most:
        case 0, None:
            return "*"
        case 1, None:
            return "+"
        case 0, 1:
            return "?"
        case _:
            return f"{{{least},{'' if most is None else most}}}"


def _class(ranges: Ranges) -> str:
    """Never `[^...]`, which lets a library take halves of surrogate pairs too."""
    return "[" + "".join(_code(low) if low == high else f"{_code(low)}-{_code(high)}" for low, high in ranges) + "]"


def _code(code: int) -> str:
    """Letters and digits as they are, everything else by its number."""
    character = chr(code)
    if code < 0x80:
        return character if character.isalnum() else f"\\u{code:04x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
