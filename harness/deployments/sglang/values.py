"""What goes into the SGLang client and what comes out of it. Log-probabilities are in nats."""

import math
from typing import Any, Literal

import msgspec

from harness.request import Finish, Timing

MASKED = -1e30
"""A log-probability below this means that a mask forbade the token: servers send the smallest float32, not -inf."""


class ChatMessage(msgspec.Struct, frozen=True):
    """One turn of a conversation; `role` is what the model's chat template takes: system, user, assistant."""

    role: str
    content: str


class Token(msgspec.Struct, frozen=True):
    """A token and the text it stands for on its own. Part of a character shows as U+FFFD: only `id` tells tokens apart,
    since different tokens can have the same text."""

    id: int
    text: str


class TokenLogprob(msgspec.Struct, frozen=True):
    """A token with its log-probability. `text` is None where the server was not asked for it.

    `top` are the most likely tokens at this place, best first, one for each id, whether or not texts are equal; a value
    below `MASKED` means that a mask forbade the token. `aligned` is False where `top` belongs to another place (a known
    server fault): `confidence` is then None.
    """

    id: int
    text: str | None
    logprob: float
    top: "tuple[TokenLogprob, ...]" = ()
    aligned: bool = True

    @property
    def confidence(self) -> float | None:
        """The probability of the token; None where the row cannot be trusted."""
        return math.exp(self.logprob) if self.aligned else None


class ChatResponse(msgspec.Struct, frozen=True):
    """An answer. `label` is the bare label that was said: None without `constrain_labels`, or where the budget ended
    the answer before a label was complete (`finish` is then "length").

    `tokens` holds a value for each generated token, the stop token included, when log-probabilities were asked for,
    else None. They are taken AFTER the mask of the constraint and after temperature (at temperature 0 the softmax of
    temperature 1), so under `constrain_labels` they are not the model's own opinion: `score` gives that."""

    text: str
    label: str | None
    finish: Finish
    token_ids: tuple[int, ...]
    tokens: tuple[TokenLogprob, ...] | None
    prompt_ids: tuple[int, ...]
    completion_tokens: int
    cached_tokens: int | None
    request_id: str
    attempts: int


class ScoringResponse(msgspec.Struct, frozen=True):
    """How likely the model finds a completion. `tokens` has exactly one value for each token of it; they are the
    model's own, BEFORE any mask, at temperature 1. Tokens of the prompt and the stop token are not in it."""

    completion: str
    tokens: tuple[TokenLogprob, ...]
    prompt_ids: tuple[int, ...]
    cached_tokens: int | None
    request_id: str
    attempts: int

    @property
    def total(self) -> float:
        """The log-probability of the whole completion."""
        return math.fsum(token.logprob for token in self.tokens)


class ServerGrammar(msgspec.Struct, frozen=True):
    """A constraint in the words of SGLang's own grammar backend. `json_schema` is JSON text."""

    kind: Literal["regex", "json_schema", "ebnf"]
    text: str


class ServerProcessor(msgspec.Struct, frozen=True):
    """A logit processor that runs inside the server: `code` is the string that SGLang unpickles, `params` are the
    request's own parameters for it. A `code` that cannot be unpickled ends the server, not the request."""

    code: str
    params: dict[str, Any]


class Generated(msgspec.Struct, frozen=True):
    """What the native endpoint generated. `token_ids` holds every generated token, the stop token included; `text`
    does not show the stop token. `timing.token_s` has the arrival of each token, seconds after sending; tokens that
    arrived in one event share a time. `tokens` as in `ChatResponse`, without texts. `meta` is the server's `meta_info`
    as it came, with the lists that a processor in the server reported."""

    text: str
    token_ids: tuple[int, ...]
    finish: Finish
    timing: Timing
    tokens: tuple[TokenLogprob, ...] | None
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None
    meta: dict[str, Any]
    request_id: str
    attempts: int
