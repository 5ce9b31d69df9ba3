"""llguidance (https://github.com/guidance-ai/llguidance): an Earley parser over lexemes, in Rust.

It takes all four kinds of constraint. Two of its ways are set here and not left to its defaults. Forcing is off: with a
tokenizer that it trusts to be canonical it would allow one single token wherever the bytes are forced, although others
spell the same text. White space in JSON is bounded (`harness.masks.whitespace`). Keywords of JSON Schema that it does
not know are errors.
"""

import json
from collections.abc import Sequence

from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper, __version__

from harness.constraint import Constraint, Grammar, JsonSchema, Labels, Regex, labels_pattern
from harness.errors import Unsupported
from harness.grammar import parse
from harness.mask import Automaton, Compiler, Mask, Matcher
from harness.masks.lark import lark
from harness.masks.stopping import Ends, Stopping
from harness.masks.whitespace import PATTERN
from harness.regexes import portable
from harness.vocabulary import Vocabulary

HEADER = '%llguidance {"no_forcing": true}\n'


class Engine:
    """llguidance as a `harness.mask.MaskEngine`."""

    name = "llguidance"

    def version(self) -> str:
        return str(__version__)

    def compiler(self, vocabulary: Vocabulary) -> Compiler:
        return _Compiler(vocabulary)


class _Compiler:
    def __init__(self, vocabulary: Vocabulary) -> None:
        self._ends = Ends(vocabulary)
        wrapper = TokenizerWrapper(_Bytes(vocabulary, self._ends))
        self._tokenizer = LLTokenizer(wrapper, eos_token=list(vocabulary.stop_ids))

    def compile(self, constraint: Constraint) -> Automaton:
        grammar = HEADER + _lark(constraint)
        start = LLMatcher(self._tokenizer, grammar, log_level=0)
        if start.is_error():
            raise Unsupported(_first_line(start.get_error()))
        return _Automaton(start, self._ends)


class _Bytes:
    """The vocabulary as llguidance's wrapper reads it. Tokens without text get names of their own, which the library
    marks as special, so that no text spells them."""

    def __init__(self, vocabulary: Vocabulary, ends: Ends) -> None:
        silent = [i for i in range(vocabulary.width) if i not in ends.spelling]
        self.eos_token_id = vocabulary.stop_ids[0]
        self.bos_token_id = None
        self.special_token_ids = silent
        self.tokens = [
            (vocabulary.tokens[i] or b"") if i in ends.spelling else b"%d" % i for i in range(vocabulary.width)
        ]

    def __call__(self, text: bytes | str) -> Sequence[int]:
        raise NotImplementedError("forcing is off, so nothing is tokenized")


class _Automaton:
    def __init__(self, start: LLMatcher, ends: Ends) -> None:
        self._start = start
        self._ends = ends

    def matcher(self) -> Matcher:
        return Stopping(_Text(self._start.deep_copy()), self._ends)


class _Text:
    def __init__(self, matcher: LLMatcher) -> None:
        self._matcher = matcher

    def fill(self, mask: Mask) -> None:
        self._matcher.unsafe_compute_mask_ptr(mask.ctypes.data, mask.nbytes)
        if self._matcher.is_error():
            raise Unsupported(_first_line(self._matcher.get_error()))

    def take(self, token: int) -> bool:
        if self._matcher.validate_tokens([token]) != 1:
            return False
        if not self._matcher.consume_token(token):
            raise Unsupported(_first_line(self._matcher.get_error()))
        return True

    def complete(self) -> bool:
        return bool(self._matcher.is_accepting())


def _lark(constraint: Constraint) -> str:
    match constraint:
        case Labels(labels=labels):
            return f"start: /{_slashed(labels_pattern(labels))}/"
        case Regex(pattern=pattern):
            return f"start: /{_slashed(portable(pattern))}/"
        case JsonSchema(schema=schema, whitespace=whitespace):
            return f"start: %json {json.dumps(_with_options(json.loads(schema), whitespace == 'flexible'))}"
        case Grammar(ebnf=ebnf):
            return lark(parse(ebnf))


def _slashed(pattern: str) -> str:
    return pattern.replace("/", r"\/")


def _with_options(schema: object, flexible: bool) -> dict[str, object]:
    """The schema with the library's own options in it; `true` is `{}` to it."""
    options: dict[str, object] = {"whitespace_flexible": flexible, "item_separator": ",", "key_separator": ":"}
    if flexible:
        options["whitespace_pattern"] = PATTERN
    whole = schema if isinstance(schema, dict) else {}
    return whole | {"x-guidance": options}


def _first_line(error: str) -> str:
    return error.strip().splitlines()[0] if error.strip() else "the library names no reason"


ENGINE = Engine()
