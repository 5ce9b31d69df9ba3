"""Continuing a prompt by text, id for id, so that no token spans the join.

The text is tokenized on its own. Tokenizers of the SentencePiece family put a space before lone text; there the text is
tokenized behind an anchor instead, which takes the space, and the anchor's ids are cut off. Which of the two is right
is not guessed: the one is taken with which the whole reads back as prompt and text, exactly.
"""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from harness.deployments.sglang.faults import UnsoundAnswerError
from harness.deployments.sglang.values import Token

_T = TypeVar("_T")


class _Tokens(msgspec.Struct):
    tokens: list[list[int]]


class _Rendered(msgspec.Struct):
    tokens: list[int]


class _Texts(msgspec.Struct):
    text: list[str]


def read_rows(body: bytes, count: int) -> list[tuple[int, ...]]:
    """The ids of each of `count` texts. Raises `UnsoundAnswerError`."""
    rows = _decode(body, _Tokens).tokens
    if len(rows) != count:
        raise UnsoundAnswerError(f"{count} texts were sent to /tokenize, {len(rows)} came back")
    return [tuple(row) for row in rows]


def read_rendered(body: bytes) -> tuple[int, ...]:
    """The ids of a rendered conversation. Raises `UnsoundAnswerError`."""
    ids = tuple(_decode(body, _Rendered).tokens)
    if not ids:
        raise UnsoundAnswerError("the chat template made an empty prompt")
    return ids


def read_texts(body: bytes, count: int) -> list[str]:
    """The text of each of `count` rows of ids. Raises `UnsoundAnswerError`."""
    texts = _decode(body, _Texts).text
    if len(texts) != count:
        raise UnsoundAnswerError(f"{count} rows were sent to /detokenize, {len(texts)} came back")
    return texts


def candidates(alone: tuple[int, ...], anchor: tuple[int, ...], anchored: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The ways of tokenizing a continuation: alone, and behind the anchor where the anchor's ids stay as they are."""
    found = [alone]
    if anchored[: len(anchor)] == anchor and anchored[len(anchor) :] != alone:
        found.append(anchored[len(anchor) :])
    return [ids for ids in found if ids]


def exact(ways: Sequence[tuple[int, ...]], text: str, before: str, whole: Sequence[str]) -> tuple[int, ...]:
    """The first way with which the whole reads back as `before + text`. Raises `UnsoundAnswerError` if none does."""
    for ids, reads in zip(ways, whole, strict=True):
        if reads == before + text:
            return ids
    read = [reads[len(before) :] for reads in whole]
    raise UnsoundAnswerError(f"the tokenizer cannot continue the prompt with {text!r} exactly: it reads back as {read}")


def tokens(ids: Sequence[int], texts: Sequence[str]) -> list[Token]:
    """Ids with the text that each stands for on its own."""
    return [Token(token, text) for token, text in zip(ids, texts, strict=True)]


def _decode(body: bytes, form: type[_T]) -> _T:
    try:
        return msgspec.json.decode(body, type=form)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise UnsoundAnswerError(f"the server's answer has another form than expected: {error}") from None
