"""What the mask did to one token, as a reader sees it."""

import math

import msgspec

from harness.report import numbers
from harness.report.tokens import TokenTexts
from harness.request import Completion, Trace


class TokenView(msgspec.Struct, frozen=True):
    """`before` and `after` are the probabilities of the token without and with the mask, `kept` the probability that
    the mask kept. `wanted` is the model's most likely token where it was another one, with its probability."""

    text: str
    before: str
    after: str
    kept: str
    allowed: str
    wanted: str
    wanted_before: str
    forced: bool


def token_views(completion: Completion, texts: TokenTexts, limit: int) -> tuple[TokenView, ...]:
    """The first `limit` tokens of a completion that has a trace."""
    trace = completion.trace
    if trace is None:
        return ()
    shown = enumerate(completion.token_ids[:limit])
    return tuple(_view(place, token, trace, texts) for place, token in shown)


def _view(place: int, token: int, trace: Trace, texts: TokenTexts) -> TokenView:
    wanted, allowed = trace.wanted[place], trace.allowed[place]
    other = wanted is not None and wanted != token
    return TokenView(
        text=texts.show(token),
        before=_probability(trace.raw_logprob[place]),
        after=_probability(trace.masked_logprob[place]),
        kept=numbers.probability(trace.mass[place]),
        allowed=numbers.count(allowed),
        wanted=texts.show(wanted) if other else "",
        wanted_before=_probability(trace.wanted_logprob[place]) if other else "",
        forced=allowed == 1,
    )


def _probability(logprob: float | None) -> str:
    return numbers.probability(None if logprob is None else math.exp(logprob))
