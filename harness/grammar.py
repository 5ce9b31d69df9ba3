"""Grammars in the notation `root ::= ...` (GBNF): how they are read, and the oracle that says what they derive.

    root ::= item ("," " "? item)*        # a comment
    item ::= "\\"" [a-zé]{1,8} "\\"" | [^,\\]\\n]+

Literals in double quotes and classes in brackets take the escapes `\\n \\r \\t \\xHH \\uHHHH \\UHHHHHHHH`, and a
backslash before one of `\\ " ' [ ] - ^ /`. A rule ends where the next one begins, so it may span lines. Rules may be recursive in any way. An
alternative that may be empty is written `""`.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

import msgspec

from harness.errors import ConstraintError
from harness.expression import Chars, Concat, Either, Expression, Repeat, Rule, chars, concat, either, literal, negated

Rules = Mapping[str, Expression]
"""What each rule of a grammar derives; an answer is a text of the rule `root`."""

TOKEN = re.compile(
    r"""
    (?P<blank>  \s+ | \#[^\n]* )
  | (?P<define> [A-Za-z_][A-Za-z0-9_-]* (?=\s*::=) )
  | (?P<is>     ::= )
  | (?P<name>   [A-Za-z_][A-Za-z0-9_-]* )
  | (?P<text>   " (?: [^"\\\n] | \\. )* " )
  | (?P<class>  \[ (?: [^\]\\\n] | \\. )* \] )
  | (?P<repeat> [*+?] | \{ \s* \d+ \s* (?: , \s* \d* \s* )? \} )
  | (?P<mark>   [()|] )
    """,
    re.VERBOSE,
)
CHARACTER = re.compile(r"\\x([0-9A-Fa-f]{2})|\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})|\\(.)|(.)", re.DOTALL)
NAMED = {"n": "\n", "r": "\r", "t": "\t"} | {c: c for c in "\\\"'][-^/"}


class Token(msgspec.Struct, frozen=True):
    """A word of the notation. `kind` is a group of `TOKEN`, or `end`."""

    kind: str
    text: str
    line: int


@lru_cache(maxsize=256)
def parse(ebnf: str) -> Rules:
    """The rules of a grammar. Raises `ConstraintError`, with the line, for what cannot be read, rules that are missing
    or defined twice, and a `root` that derives nothing."""
    if not ebnf.strip():
        raise ConstraintError("grammar: it is empty", "a rule root ::= ...", "write one, or use no constraint")
    reader = _Reader([*_tokens(ebnf)])
    rules = reader.rules()
    if "root" not in rules:
        raise ConstraintError("grammar: no rule is called root", "a rule root ::= ...", "name the first rule root")
    if "root" not in productive(rules):
        raise ConstraintError("grammar: root derives no text", "a rule that ends", "give the recursion a way out")
    return rules


def derives(ebnf: str, text: str) -> bool:
    """Whether the grammar derives `text` as a whole. Slow and plain: for each rule and place it finds every place where
    the rule can end, until nothing new is found. Raises `ConstraintError`."""
    return len(text) in _Ends(parse(ebnf), text).of("root", 0)


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


class _Reader:
    """Recursive descent over the words of a grammar."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._place = 0
        self._names: list[Token] = []

    def rules(self) -> Rules:
        found: dict[str, Expression] = {}
        while self._now().kind != "end":
            defined = self._take("define", "a rule name ::= ...")
            self._take("is", "::=")
            if defined.text in found:
                raise _error(defined, f"the rule {defined.text!r} is defined twice", "one definition")
            found[defined.text] = self._either()
        for name in self._names:
            if name.text not in found:
                raise _error(name, f"the rule {name.text!r} is not defined", "a rule for every name")
        return found

    def _either(self) -> Expression:
        items = [self._concat()]
        while self._now().text == "|":
            self._place += 1
            items.append(self._concat())
        return either(items)

    def _concat(self) -> Expression:
        items = []
        while (item := self._repeated()) is not None:
            items.append(item)
        if not items:
            raise _error(self._now(), f"found {self._now().text!r}", 'a literal, class, rule or group; "" for nothing')
        return concat(*items)

    def _repeated(self) -> Expression | None:
        item = self._one()
        while item is not None and self._now().kind == "repeat":
            item = _times(item, self._take("repeat", "a repeat"))
        return item

    def _one(self) -> Expression | None:
        token = self._now()
        match token.kind:
            case "text":
                item: Expression = literal("".join(map(chr, _codes(token, token.text[1:-1]))))
            case "class":
                item = _class(token)
            case "name":
                self._names.append(token)
                item = Rule(token.text)
            case "mark" if token.text == "(":
                return self._group()
            case _:
                return None
        self._place += 1
        return item

    def _group(self) -> Expression:
        self._place += 1
        item = self._either()
        if self._now().text != ")":
            raise _error(self._now(), f"found {self._now().text!r}", "a closing )")
        self._place += 1
        return item

    def _now(self) -> Token:
        return self._tokens[self._place]

    def _take(self, kind: str, wanted: str) -> Token:
        token = self._now()
        if token.kind != kind:
            raise _error(token, f"found {token.text!r}", wanted)
        self._place += 1
        return token


def _tokens(ebnf: str) -> Iterator[Token]:
    place, line = 0, 1
    while place < len(ebnf):
        if not (found := TOKEN.match(ebnf, place)):
            here = ebnf[place:].split("\n", 1)[0][:20]
            raise _error(Token("", here, line), f"cannot read {here!r}", "GBNF notation")
        if found.lastgroup != "blank":
            yield Token(str(found.lastgroup), found[0], line)
        place, line = found.end(), line + found[0].count("\n")
    yield Token("end", "the end", line)


def _times(item: Expression, token: Token) -> Expression:
    match token.text:
        case "*":
            return Repeat(item, 0, None)
        case "+":
            return Repeat(item, 1, None)
        case "?":
            return Repeat(item, 0, 1)
    least, comma, most = token.text.strip("{} \t\n").partition(",")
    first, last = int(least), int(most) if most.strip() else (None if comma else int(least))
    if last is not None and last < first:
        raise _error(token, f"{token.text} asks for at least {first} and at most {last}", "{least,most}")
    return Repeat(item, first, last)


def _class(token: Token) -> Chars:
    inverse = token.text.startswith("[^")
    body = token.text[2 if inverse else 1 : -1]
    marked = [(code, plain) for code, plain in _marked(token, body)]
    pairs, i = [], 0
    while i < len(marked):
        low = high = marked[i][0]
        if i + 2 < len(marked) and marked[i + 1] == (ord("-"), True):
            high, i = marked[i + 2][0], i + 2
        if high < low:
            raise _error(token, f"the range {chr(low)}-{chr(high)} runs backwards", "a range from low to high")
        pairs.append((low, high))
        i += 1
    return negated(chars(pairs)) if inverse else chars(pairs)


def _codes(token: Token, body: str) -> list[int]:
    return [code for code, _ in _marked(token, body)]


def _marked(token: Token, body: str) -> Iterator[tuple[int, bool]]:
    """Each character as a code point, and whether it stands without an escape."""
    for found in CHARACTER.finditer(body):
        short, middle, long, named, plain = found.groups()
        if plain is not None:
            yield ord(plain), True
        elif named is None:
            yield int(short or middle or long, 16), False
        elif named in NAMED:
            yield ord(NAMED[named]), False
        else:
            raise _error(token, f"the escape \\{named} is not known", r"\n \r \t \\ \" \xHH \uHHHH \UHHHHHHHH")


def _error(token: Token, found: str, wanted: str) -> ConstraintError:
    return ConstraintError(f"grammar, line {token.line}: {found}", wanted, "mend that line")
