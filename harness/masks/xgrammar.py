"""xgrammar (https://github.com/mlc-ai/xgrammar): a byte-level pushdown automaton with masks made ahead, in C++.

It takes all four kinds of constraint. JSON Schema is read by the standard, not in the library's strict mode:
properties that the schema does not forbid are allowed. Between JSON tokens stand at most
`harness.masks.whitespace.MOST` white spaces, or none. What the library passes over in a schema is `Unsupported`
(`harness.masks.xgrammar_limits`). Classes are written without `[^...]`, in which the library takes halves of
surrogate pairs too. Masks are made while a grammar is compiled, so compiling is the dear part.
"""

import json
from importlib.metadata import version
from typing import Any

import xgrammar

from harness.constraint import Constraint, Grammar, JsonSchema, Labels, Regex, labels_pattern
from harness.errors import Unsupported
from harness.grammar import parse
from harness.mask import Automaton, Compiler, Mask, Matcher
from harness.masks.gbnf import gbnf
from harness.masks.stopping import Ends, Stopping
from harness.masks.whitespace import MOST
from harness.masks.xgrammar_limits import check_schema
from harness.regexes import tree
from harness.spelling import spell
from harness.vocabulary import Vocabulary


class Engine:
    """xgrammar as a `harness.mask.MaskEngine`."""

    name = "xgrammar"

    def version(self) -> str:
        return version("xgrammar")

    def compiler(self, vocabulary: Vocabulary) -> Compiler:
        return _Compiler(vocabulary)


class _Compiler:
    def __init__(self, vocabulary: Vocabulary) -> None:
        self._ends = Ends(vocabulary)
        tokens = [(token or b"") if i in self._ends.spelling else b"" for i, token in enumerate(vocabulary.tokens)]
        information = xgrammar.TokenizerInfo(
            tokens,
            xgrammar.VocabType.RAW,
            vocab_size=vocabulary.width,
            stop_token_ids=list(vocabulary.stop_ids),
        )
        self._compiler = xgrammar.GrammarCompiler(information, max_threads=1, cache_enabled=False)

    def compile(self, constraint: Constraint) -> Automaton:
        try:
            return _Automaton(self._compiled(constraint), self._ends)
        except (RuntimeError, ValueError) as error:
            raise Unsupported(_reason(error)) from None

    def _compiled(self, constraint: Constraint) -> Any:
        match constraint:
            case Labels(labels=labels):
                return self._compiler.compile_regex(labels_pattern(labels))
            case Regex(pattern=pattern):
                return self._compiler.compile_regex(spell(tree(pattern), negate=False))
            case JsonSchema(schema=schema, whitespace=whitespace):
                check_schema(json.loads(schema))
                return self._json(schema, flexible=whitespace == "flexible")
            case Grammar(ebnf=ebnf):
                return self._compiler.compile_grammar(gbnf(parse(ebnf)))

    def _json(self, schema: str, flexible: bool) -> Any:
        return self._compiler.compile_json_schema(
            schema,
            any_whitespace=flexible,
            separators=(",", ":"),
            strict_mode=False,
            max_whitespace_cnt=MOST if flexible else None,
        )


class _Automaton:
    def __init__(self, compiled: Any, ends: Ends) -> None:
        self._compiled = compiled
        self._ends = ends

    def matcher(self) -> Matcher:
        return Stopping(_Text(xgrammar.GrammarMatcher(self._compiled)), self._ends)


class _Text:
    def __init__(self, matcher: Any) -> None:
        self._matcher = matcher

    def fill(self, mask: Mask) -> None:
        """The library leaves the mask as it is where it allows everything."""
        if not self._matcher.fill_next_token_bitmask(mask.reshape(1, -1)):
            mask.fill(-1)

    def take(self, token: int) -> bool:
        return bool(self._matcher.accept_token(token))

    def complete(self) -> bool:
        return bool(self._matcher.is_completed())


def _reason(error: Exception) -> str:
    return str(error).strip().splitlines()[-1]


ENGINE = Engine()
