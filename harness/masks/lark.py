"""Grammars in llguidance's dialect of Lark.

llguidance reads words (lexemes, regexes) and parses those, and a word always takes as much text as it can. So that this
changes as little as possible, every part without recursion is written as one single word; a grammar without recursion
is one regex, which is exact. Where two neighbouring words of a recursive grammar overlap (`"a" root? "ab"`), llguidance
may refuse a text that the grammar derives; it never allows one that it does not derive.
"""

from harness.expression import Chars, Concat, Either, Expression, Repeat, Rule, concat, rules_in
from harness.grammar import Rules
from harness.spelling import spell


def lark(rules: Rules) -> str:
    """The grammar as Lark, with `start` for `root`."""
    plain = unrolled(rules)
    names = {name: f"r{number}" for number, name in enumerate(plain)}
    lines = [f"{names[name]}: {_write(expression, names)}" for name, expression in plain.items()]
    return "\n".join([f"start: {names['root']}", *lines])


def unrolled(rules: Rules) -> dict[str, Expression]:
    """The root and the recursive rules, with every other rule written out where it is used."""
    recursive = frozenset(name for name in rules if name in _reachable(rules, name))
    needed = {"root"} | (recursive & _reachable(rules, "root"))
    return {name: _written_out(rules[name], rules, recursive) for name in rules if name in needed}


def _reachable(rules: Rules, start: str) -> frozenset[str]:
    seen: set[str] = set()
    todo = [*rules_in(rules[start])]
    while todo:
        if (name := todo.pop()) not in seen:
            seen.add(name)
            todo.extend(rules_in(rules[name]))
    return frozenset(seen)


def _written_out(expression: Expression, rules: Rules, recursive: frozenset[str]) -> Expression:
    match expression:
        case Chars():
            return expression
        case Concat(items=items):
            return Concat(tuple(_written_out(item, rules, recursive) for item in items))
        case Either(items=items):
            return Either(tuple(_written_out(item, rules, recursive) for item in items))
        case Repeat(item=item, least=least, most=most):
            return Repeat(_written_out(item, rules, recursive), least, most)
        case Rule(name=name):
            return expression if name in recursive else _written_out(rules[name], rules, recursive)


def _write(expression: Expression, names: dict[str, str]) -> str:
    if not rules_in(expression):
        return _word(expression)
    match expression:
        case Rule(name=name):
            return names[name]
        case Concat(items=items):
            return " ".join(_write(part, names) for part in _joined(items))
        case Either(items=items):
            plain = [item for item in items if not rules_in(item)]
            words = [_word(Either(tuple(plain)))] if plain else []
            return "(" + " | ".join([*words, *(_write(item, names) for item in items if rules_in(item))]) + ")"
        case Repeat(item=item, least=least, most=most):
            return f"({_write(item, names)}){{{least},{'' if most is None else most}}}"
        case Chars():
            return _word(expression)


def _joined(items: tuple[Expression, ...]) -> list[Expression]:
    """Neighbours without rules become one."""
    joined: list[Expression] = []
    for item in items:
        if joined and not rules_in(item) and not rules_in(joined[-1]):
            joined[-1] = concat(joined[-1], item)
        else:
            joined.append(item)
    return joined


def _word(expression: Expression) -> str:
    pattern = spell(expression).replace("/", r"\/")
    return f"/{pattern}/" if pattern else '""'
