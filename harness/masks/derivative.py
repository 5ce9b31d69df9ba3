"""The automaton of the reference engine: what may still be said, as a set of rests, one character at a time.

A rest is an expression and then another rest; the rest 0 is the empty text. Taking a character turns each rest into the
rests that may follow it (Antimirov's partial derivatives), so what is allowed can be read off the constraint itself.
Rests and states are built when they are first met and kept.
"""

from collections.abc import Iterator

from harness.errors import Unsupported
from harness.expression import Chars, Concat, Either, Expression, Ranges, Repeat, Rule
from harness.grammar import Rules, derives_something, productive

END = 0
MOST_RESTS = 5_000
"""A state with more rests than this is given up as too ambiguous."""

Heads = tuple[tuple[Ranges, int], ...]


class State:
    """What may still be said: after these characters (`ranges`) those rests. `complete`: the text may end here."""

    def __init__(self, heads: Heads, complete: bool) -> None:
        self.heads = heads
        self.complete = complete
        self.next: dict[int, State | None] = {}


class Derivatives:
    """The states of one constraint, from its rules (`harness.grammar.Rules`). Raises `Unsupported` for left recursion,
    which this method cannot follow."""

    def __init__(self, rules: Rules) -> None:
        if name := left_recursive(rules):
            raise Unsupported(f"the rule {name!r} is left-recursive")
        self._rules = rules
        self._productive = productive(rules)
        if "root" not in self._productive:
            raise Unsupported("no text meets the constraint")
        self._rests: list[tuple[Expression, int]] = [(Concat(()), END)]
        self._numbers: dict[tuple[Expression, int], int] = {}
        self._heads: dict[int, tuple[Heads, bool]] = {END: ((), True)}
        self._states: dict[frozenset[int], State] = {}
        self.start = self._state(frozenset([self._rest(Rule("root"), END)]))

    def step(self, state: State, code: int) -> State | None:
        """The state after the character `code`; None where it is not allowed."""
        if code not in state.next:
            rests = frozenset(rest for ranges, rest in state.heads if any(low <= code <= high for low, high in ranges))
            state.next[code] = self._state(rests) if rests else None
        return state.next[code]

    def _state(self, rests: frozenset[int]) -> State:
        if rests not in self._states:
            if len(rests) > MOST_RESTS:
                raise Unsupported(f"more than {MOST_RESTS} ways to read the same text")
            opened = [self._open(rest) for rest in rests]
            heads = tuple({head for heads, _ in opened for head in heads})
            self._states[rests] = State(heads, any(complete for _, complete in opened))
        return self._states[rests]

    def _rest(self, expression: Expression, then: int) -> int:
        key = (expression, then)
        if key not in self._numbers:
            self._numbers[key] = len(self._rests)
            self._rests.append(key)
        return self._numbers[key]

    def _open(self, rest: int) -> tuple[Heads, bool]:
        """The characters with which `rest` can begin, each with what comes after; whether it can be empty."""
        if rest not in self._heads:
            heads: set[tuple[Ranges, int]] = set()
            seen, todo = {rest}, [rest]
            while todo:
                expression, then = self._rests[(now := todo.pop())]
                if now != END and isinstance(expression, Chars):
                    heads.add((expression.ranges, then))
                elif now != END:
                    fresh = [r for r in self._unfold(expression, then) if r not in seen]
                    seen.update(fresh)
                    todo.extend(fresh)
            self._heads[rest] = (tuple(heads), END in seen)
        return self._heads[rest]

    def _unfold(self, expression: Expression, then: int) -> Iterator[int]:
        match expression:
            case Concat(items=items):
                for item in reversed(items):
                    then = self._rest(item, then)
                yield then
            case Either(items=items):
                yield from (self._rest(item, then) for item in items if derives_something(item, self._productive))
            case Repeat(item=item, least=least, most=most):
                if least == 0:
                    yield then
                if most != 0 and derives_something(item, self._productive):
                    fewer = Repeat(item, max(least - 1, 0), None if most is None else most - 1)
                    yield self._rest(item, self._rest(fewer, then))
            case Rule(name=name):
                yield self._rest(self._rules[name], then)
            case Chars():
                return


def left_recursive(rules: Rules) -> str | None:
    """A rule that can begin with itself, if there is one."""
    empty = _empty_rules(rules)
    begins = {name: frozenset(_first_rules(expression, empty)) for name, expression in rules.items()}
    for name in rules:
        seen: set[str] = set()
        todo = [*begins[name]]
        while todo:
            if (other := todo.pop()) not in seen:
                seen.add(other)
                todo.extend(begins[other])
        if name in seen:
            return name
    return None


def _empty_rules(rules: Rules) -> frozenset[str]:
    known: frozenset[str] = frozenset()
    while True:
        found = frozenset(name for name, expression in rules.items() if _may_be_empty(expression, known))
        if found == known:
            return known
        known = found


def _may_be_empty(expression: Expression, known: frozenset[str]) -> bool:
    match expression:
        case Chars():
            return False
        case Concat(items=items):
            return all(_may_be_empty(item, known) for item in items)
        case Either(items=items):
            return any(_may_be_empty(item, known) for item in items)
        case Repeat(item=item, least=least):
            return least == 0 or _may_be_empty(item, known)
        case Rule(name=name):
            return name in known


def _first_rules(expression: Expression, empty: frozenset[str]) -> Iterator[str]:
    match expression:
        case Rule(name=name):
            yield name
        case Either(items=items):
            for item in items:
                yield from _first_rules(item, empty)
        case Repeat(item=item):
            yield from _first_rules(item, empty)
        case Concat(items=items):
            for item in items:
                yield from _first_rules(item, empty)
                if not _may_be_empty(item, empty):
                    return
        case Chars():
            return
