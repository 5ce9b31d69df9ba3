"""How the suite walks an engine: token by token, by what its masks allow."""

from functools import cache
from random import Random

import numpy as np

from harness.constraint import Constraint
from harness.deployments.embedded.weights import default_weights
from harness.errors import Unsupported
from harness.mask import Automaton, Compiler, Matcher, allowed, words
from harness.masks import engine
from harness.tokens import vocabulary
from harness.vocabulary import Vocabulary
from tests.tokenizers_built import byte_level, sentencepiece_style

PADDING = 37
CLOSING = (b'"', b"}", b"]", b",", b":")


@cache
def a_vocabulary(name: str) -> Vocabulary:
    """`sentencepiece` and `byte_level` are small, `smollm2` is that of the default model."""
    match name:
        case "sentencepiece":
            return vocabulary(sentencepiece_style(), sentencepiece_style().get_vocab_size() + PADDING, (2, 1))
        case "byte_level":
            return vocabulary(byte_level(), byte_level().get_vocab_size() + PADDING, (0,))
        case _:
            return vocabulary(default_weights(), 49152, (2,))


@cache
def compiler(engine_name: str, vocabulary_name: str) -> Compiler:
    return engine(engine_name).compiler(a_vocabulary(vocabulary_name))


def compiled(engine_name: str, vocabulary_name: str, constraint: Constraint) -> Automaton | None:
    """None where the engine cannot express the constraint and says why."""
    try:
        return compiler(engine_name, vocabulary_name).compile(constraint)
    except Unsupported as unsupported:
        reason = unsupported.reason.strip()
    assert reason
    return None


def may(matcher: Matcher, known: Vocabulary) -> set[int]:
    """The tokens allowed next; the mask is full of rubbish before, and bits past the width must be cleared."""
    mask = np.full(words(known.width), 0x5A5A5A5A, dtype=np.int32)
    matcher.fill(mask)
    tail = np.unpackbits(mask.view(np.uint8), bitorder="little")[known.width :]
    assert not tail.any()
    return set(allowed(mask, known.width).tolist())


def says(automaton: Automaton, known: Vocabulary, text: str) -> bool:
    """Whether the engine lets a model say `text`, byte by byte, and then stop."""
    matcher = automaton.matcher()
    singles = _singles(known)
    for byte in text.encode():
        if singles[byte] not in may(matcher, known):
            return False
        matcher.advance(singles[byte])
    return set(known.stop_ids) <= may(matcher, known)


def takes(automaton: Automaton, known: Vocabulary, text: str) -> bool:
    """The same without looking at the masks on the way, for long texts."""
    matcher, singles = automaton.matcher(), _singles(known)
    try:
        for byte in text.encode():
            matcher.advance(singles[byte])
    except ValueError:
        return False
    return set(known.stop_ids) <= may(matcher, known)


def walk(automaton: Automaton, known: Vocabulary, seed: int, most: int = 80) -> list[int] | None:
    """The tokens of one random text that the engine let end; None where it was not at an end after `most` tokens. After
    some tokens those are taken that bring JSON to an end."""
    random, matcher, ids = Random(seed), automaton.matcher(), list[int]()
    while len(ids) < most:
        now = may(matcher, known)
        assert now, f"nothing may follow {known.bytes_of(ids)!r}"
        texts = sorted(now - set(known.stop_ids))
        if len(now) > len(texts) and (not texts or random.random() < 0.3 or len(ids) > 30):
            return ids
        if len(ids) > 20:
            texts = [i for i in texts if known.tokens[i] in CLOSING] or texts
        ids.append(random.choice(texts))
        matcher.advance(ids[-1])
    return None


@cache
def _singles(known: Vocabulary) -> dict[int, int]:
    """A token for each single byte."""
    return {token[0]: i for i, token in enumerate(known.tokens) if token and len(token) == 1}
