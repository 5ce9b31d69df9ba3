"""outlines-core (https://github.com/dottxt-ai/outlines-core), the engine of outlines: a table of all states and tokens,
in Rust, made from one regex.

It takes labels, regexes and JSON Schema, which it turns into a regex; it has no grammars. Every pattern is closed with
`$`. Without it the table of 0.2.14 has two holes: of two alternatives of which one begins with the other only the first
counts (`a|ab`), and a text that is complete cannot go on to one that is not (`[0-9]+(\\.[0-9]+)?` never allows the
point). What the library passes over in a schema is `Unsupported` (`harness.masks.outlines_limits`). The table can take
long and much memory to make.
"""

import json
from importlib.metadata import version
from typing import Any

from outlines_core import Guide, Index
from outlines_core import Vocabulary as Table
from outlines_core.json_schema import build_regex_from_schema

from harness.constraint import Constraint, Grammar, JsonSchema, Labels, Regex, labels_pattern
from harness.errors import Unsupported
from harness.expression import beyond_empty
from harness.mask import Automaton, Compiler, Mask, Matcher
from harness.masks.outlines_limits import check_schema
from harness.masks.stopping import Ends, Stopping
from harness.masks.whitespace import PATTERN
from harness.regexes import tree
from harness.spelling import spell
from harness.vocabulary import Vocabulary


class Engine:
    """outlines-core as a `harness.mask.MaskEngine`."""

    name = "outlines"

    def version(self) -> str:
        return version("outlines_core")

    def compiler(self, vocabulary: Vocabulary) -> Compiler:
        return _Compiler(vocabulary)


class _Compiler:
    def __init__(self, vocabulary: Vocabulary) -> None:
        self._ends = Ends(vocabulary)
        ids: dict[bytes, list[int]] = {}
        for token in sorted(self._ends.spelling):
            ids.setdefault(vocabulary.tokens[token] or b"", []).append(token)
        self._table = Table(vocabulary.stop_ids[0], ids)

    def compile(self, constraint: Constraint) -> Automaton:
        pattern, empty = _pattern(constraint)
        try:
            return _Automaton(Index(f"({pattern})$", self._table), empty, self._ends)
        except ValueError as error:
            raise Unsupported(_reason(error)) from None
        except BaseException as error:
            if (
                type(error).__name__ != "PanicException"
            ):  # a panic in Rust is no Exception, and must not end the process
                raise
            raise Unsupported(f"the library panics: {_reason(error)}") from None


class _Automaton:
    def __init__(self, index: Any, empty: bool, ends: Ends) -> None:
        self._index = index
        self._empty = empty
        self._ends = ends

    def matcher(self) -> Matcher:
        return Stopping(_Text(Guide(self._index), self._empty), self._ends)


class _Text:
    """`empty`: the text may also end before it begins, which the library's tables cannot say."""

    def __init__(self, guide: Any, empty: bool) -> None:
        self._guide = guide
        self._empty = empty

    def fill(self, mask: Mask) -> None:
        self._guide.write_mask_into(mask.ctypes.data, mask.size, mask.itemsize)

    def take(self, token: int) -> bool:
        try:
            self._guide.advance(token, return_tokens=False)
        except ValueError:
            return False
        self._empty = False
        return True

    def complete(self) -> bool:
        return self._empty or bool(self._guide.is_finished())


def _pattern(constraint: Constraint) -> tuple[str, bool]:
    """The regex of all texts but the empty one, and whether the empty one is allowed too."""
    match constraint:
        case Labels(labels=labels):
            return labels_pattern(labels), False
        case Regex(pattern=pattern):
            filled, empty = beyond_empty(tree(pattern))
            return spell(filled), empty
        case JsonSchema(schema=schema, whitespace=whitespace):
            check_schema(json.loads(schema))
            return _json(schema, PATTERN if whitespace == "flexible" else ""), False
        case Grammar():
            raise Unsupported("outlines-core has no grammars")


def _json(schema: str, gap: str) -> str:
    try:
        return str(build_regex_from_schema(schema, gap))
    except ValueError as error:
        raise Unsupported(_reason(error)) from None


def _reason(error: BaseException) -> str:
    return str(error).strip().splitlines()[0]


ENGINE = Engine()
