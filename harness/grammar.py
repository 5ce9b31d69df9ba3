"""Grammars in the notation `root ::= ...` (GBNF): how they are read, and the oracle that says what they derive.

    root ::= item ("," " "? item)*        # a comment
    item ::= "\\"" [a-zé]{1,8} "\\"" | [^,\\]\\n]+

Literals in double quotes and classes in brackets take the escapes `\\n \\r \\t \\xHH \\uHHHH \\UHHHHHHHH`, and a
backslash before one of `\\ " ' [ ] - ^ /`. A rule ends where the next one begins, so it may span lines. Rules may be
recursive in any way. An alternative that may be empty is written `""`.
"""

from functools import lru_cache

from harness.errors import ConstraintError
from harness.expression import Chars, Concat, Either, Expression, Repeat, Rule, either
from harness.gbnf_reader import Rules, read

__all__ = ["Rules", "derives", "derives_something", "parse", "productive", "recognises"]


@lru_cache(maxsize=256)
def parse(ebnf: str) -> Rules:
    """The rules of a grammar, without the parts that no text ends in, into which a library might lead a model. Raises
    `ConstraintError`, with the line, for what cannot be read, rules that are missing or defined twice, and a `root`
    that derives nothing."""
    if not ebnf.strip():
        raise ConstraintError("grammar: it is empty", "a rule root ::= ...", "write one, or use no constraint")
    rules = read(ebnf)
    if "root" not in rules:
        raise ConstraintError("grammar: no rule is called root", "a rule root ::= ...", "name the first rule root")
    ending = productive(rules)
    if "root" not in ending:
        raise ConstraintError("grammar: root derives no text", "a rule that ends", "give the recursion a way out")
    return {name: _without_dead_ends(expression, ending) for name, expression in rules.items() if name in ending}


def derives(ebnf: str, text: str) -> bool:
    """Whether the grammar derives `text` as a whole. Raises `ConstraintError` for a grammar that cannot be read."""
    return recognises(parse(ebnf), text)


def recognises(rules: Rules, text: str) -> bool:
    """Whether the rule `root` derives `text` as a whole. Slow and plain: for each rule and place it finds every place
    where the rule can end, until nothing new is found."""
    return len(text) in _Ends(rules, text).of("root", 0)


def productive(rules: Rules) -> frozenset[str]:
    """The rules that derive at least one text."""
    known: frozenset[str] = frozenset()
    while True:
        found = frozenset(name for name, expression in rules.items() if derives_something(expression, known))
        if found == known:
            return known
        known = found


def derives_something(expression: Expression, known: frozenset[str]) -> bool:
    """Whether `expression` derives at least one text, if the rules `known` do."""
    match expression:
        case Chars(ranges=ranges):
            return bool(ranges)
        case Concat(items=items):
            return all(derives_something(item, known) for item in items)
        case Either(items=items):
            return any(derives_something(item, known) for item in items)
        case Repeat(item=item, least=least):
            return least == 0 or derives_something(item, known)
        case Rule(name=name):
            return name in known


def _without_dead_ends(expression: Expression, ending: frozenset[str]) -> Expression:
    match expression:
        case Concat(items=items):
            return Concat(tuple(_without_dead_ends(item, ending) for item in items))
        case Either(items=items):
            return either([_without_dead_ends(item, ending) for item in items if derives_something(item, ending)])
        case Repeat(item=item, least=least, most=most):
            there = derives_something(item, ending)
            return Repeat(_without_dead_ends(item, ending), least, most) if there else Concat(())
        case Chars() | Rule():
            return expression


class _Ends:
    """Where each rule can end in `text`, by the place where it begins."""

    def __init__(self, rules: Rules, text: str) -> None:
        self._rules = rules
        self._codes = [ord(character) for character in text]
        self._known: dict[tuple[str, int], frozenset[int]] = {}
        self._users: dict[tuple[str, int], set[tuple[str, int]]] = {}
        self._todo: list[tuple[str, int]] = []

    def of(self, name: str, start: int) -> frozenset[int]:
        """Whenever a rule gains ends, the rules that asked for it are looked at again."""
        self._ask((name, start), (name, start))
        while self._todo:
            asked = self._todo.pop()
            found = self._walk(self._rules[asked[0]], frozenset([asked[1]]), asked)
            if found != self._known[asked]:
                self._known[asked] = found
                self._todo.extend(self._users[asked])
        return self._known[name, start]

    def _ask(self, wanted: tuple[str, int], user: tuple[str, int]) -> frozenset[int]:
        if wanted not in self._known:
            self._known[wanted] = frozenset()
            self._users[wanted] = set()
            self._todo.append(wanted)
        self._users[wanted].add(user)
        return self._known[wanted]

    def _walk(self, expression: Expression, starts: frozenset[int], user: tuple[str, int]) -> frozenset[int]:
        match expression:
            case Chars(ranges=ranges):
                return frozenset(i + 1 for i in starts if i < len(self._codes) and _within(self._codes[i], ranges))
            case Concat(items=items):
                for item in items:
                    starts = self._walk(item, starts, user)
                return starts
            case Either(items=items):
                return frozenset().union(*(self._walk(item, starts, user) for item in items))
            case Repeat(item=item, least=least, most=most):
                return self._repeat(item, least, most, starts, user)
            case Rule(name=name):
                return frozenset().union(*(self._ask((name, i), user) for i in starts))

    def _repeat(
        self, item: Expression, least: int, most: int | None, starts: frozenset[int], user: tuple[str, int]
    ) -> frozenset[int]:
        for _ in range(least):
            starts = self._walk(item, starts, user)
        reached, fresh, done = starts, starts, least
        while fresh and (most is None or done < most):
            fresh = self._walk(item, fresh, user) - reached
            reached, done = reached | fresh, done + 1
        return reached


def _within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(low <= code <= high for low, high in ranges)
