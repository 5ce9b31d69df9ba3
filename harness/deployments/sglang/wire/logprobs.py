"""SGLang's log-probability rows, `[logprob, id, text]`, read by token id and checked: a value a token, or an error.

Texts are never keys: different ids can have the same text.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from harness.deployments.sglang.faults import UnsoundAnswerError
from harness.deployments.sglang.values import TokenLogprob

Row = tuple[float | None, int, str | None]

_SAME = 1e-6
"""Two values of one token in one answer come from the same float32."""


def output_tokens(
    rows: Any, top_rows: Any, token_ids: Sequence[int], *, with_top: bool, greedy: bool
) -> tuple[TokenLogprob, ...]:
    """A value for each generated token, with the most likely tokens beside it. Raises `UnsoundAnswerError` where one is
    missing or belongs to another token."""
    values = _rows(rows, "output_token_logprobs")
    _expect(len(values) == len(token_ids), len(token_ids), len(values))
    tops = _top_rows(top_rows, len(token_ids), "output_top_logprobs") if with_top else [()] * len(token_ids)
    return tuple(
        _aligned(_value(row, token), top, greedy) for row, token, top in zip(values, token_ids, tops, strict=True)
    )


def scored_tokens(
    rows: Any, token_ids: Sequence[int], top_rows: Any = None, *, with_top: bool = False
) -> tuple[TokenLogprob, ...]:
    """A value for each token of a scored completion. SGLang puts the token before it in front, with no value; and it
    reports the id of a vocabulary's last token as 0, so ids are the ones that were sent."""
    values = _rows(rows, "input_token_logprobs")
    _expect(len(values) in (len(token_ids), len(token_ids) + 1), len(token_ids), max(0, len(values) - 1))
    own = values[len(values) - len(token_ids) :]
    tokens = tuple(_value(row, token, hidden_id=0) for row, token in zip(own, token_ids, strict=True))
    if not with_top:
        return tokens
    own_tops = top_rows[-len(token_ids) :] if isinstance(top_rows, list) else top_rows
    tops = _top_rows(own_tops, len(token_ids), "input_top_logprobs")
    return tuple(msgspec.structs.replace(token, top=top) for token, top in zip(tokens, tops, strict=True))


def misaligned(token: TokenLogprob, top: Sequence[TokenLogprob], *, greedy: bool) -> bool:
    """Whether `top` cannot be the row of `token`: it gives the token another value, or a greedy choice is not its best,
    or it leaves the token out though it would belong there (equal values at its end leave a tie out rightly)."""
    listed = [candidate.logprob for candidate in top if candidate.id == token.id]
    if listed and abs(listed[0] - token.logprob) > _SAME:
        return True
    values = [candidate.logprob for candidate in top]
    if greedy and max(values) > token.logprob + _SAME:
        return True
    return not listed and token.logprob > min(values) + _SAME


def _aligned(token: TokenLogprob, top: tuple[TokenLogprob, ...], greedy: bool) -> TokenLogprob:
    if not top:
        return token
    aligned = not misaligned(token, top, greedy=greedy)
    return msgspec.structs.replace(token, top=top, aligned=aligned)


def _value(row: Row, token: int, hidden_id: int | None = None) -> TokenLogprob:
    logprob, reported, text = row
    if reported not in (token, hidden_id):
        raise UnsoundAnswerError(f"unscored: a value for token {token} was wanted, the server sent one for {reported}")
    if logprob is None:
        raise UnsoundAnswerError(f"unscored: the server sent no value for token {token}")
    return TokenLogprob(token, text, logprob)


def _rows(rows: Any, name: str) -> list[Row]:
    try:
        return msgspec.convert(rows, list[Row])
    except msgspec.ValidationError as error:
        raise UnsoundAnswerError(f"unscored: {name} is not a list of [logprob, id, text]: {error}") from None


def _top_rows(top_rows: Any, count: int, name: str) -> list[tuple[TokenLogprob, ...]]:
    try:
        listed = msgspec.convert(top_rows, list[list[tuple[float, int, str | None]]])
    except msgspec.ValidationError as error:
        raise UnsoundAnswerError(f"unscored: {name} lacks a row: {error}") from None
    _expect(len(listed) == count, count, len(listed))
    return [tuple(TokenLogprob(token, text, logprob) for logprob, token, text in row) for row in listed]


def _expect(right: bool, wanted: int, got: int) -> None:
    if not right:
        raise UnsoundAnswerError(f"unscored: {wanted} log-probabilities were expected, the server sent {got}")
