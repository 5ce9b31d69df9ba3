"""The notation of grammars (GBNF), word by word, and the rules that a text in it defines."""

import re
from collections.abc import Iterator, Mapping

import msgspec

from harness.errors import ConstraintError
from harness.expression import Chars, Expression, Repeat, Rule, chars, concat, either, literal, negated

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


def read(ebnf: str) -> Rules:
    """The rules that `ebnf` defines, every name in them defined once. Raises `ConstraintError` with the line."""
    return _Reader([*_tokens(ebnf)]).rules()


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
