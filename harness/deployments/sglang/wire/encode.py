"""Request bodies. Nothing is left to a server's defaults that would change an answer."""

from collections.abc import Sequence
from typing import Any

import msgspec

from harness.deployments.sglang.values import ChatMessage, ServerGrammar, ServerProcessor
from harness.deployments.sglang.wire.extra import Extra, merged
from harness.request import Sampling

ANCHOR = "\n"
"""Text in front of which tokenizers that put a space before lone text have put it already (see `join`)."""


_NEUTRAL = {
    "top_p": 1.0,
    "top_k": -1,
    "min_p": 0.0,
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "repetition_penalty": 1.0,
}
"""Sent where nobody asks for something else, so that no default of a model or a server changes an answer."""


class Logprobs(msgspec.Struct, frozen=True):
    """Which log-probabilities to ask for with a generation; `texts` costs the server a decoding of every token."""

    top: int = 0
    texts: bool = False


class Generate(msgspec.Struct, frozen=True):
    """All that a generation is asked for; `sampling` are the server's fields, from `sampling_fields` or
    `chat_sampling`. Prompt prefixes are reused among requests with the same `cache` alone; empty is a name too."""

    prompt_ids: tuple[int, ...]
    sampling: dict[str, Any]
    grammar: ServerGrammar | None = None
    processor: ServerProcessor | None = None
    logprobs: Logprobs | None = None
    streamed: bool = False
    cache: str = ""
    data_parallel_rank: int | None = None

    def __post_init__(self) -> None:
        check_ids(self.prompt_ids, "prompt")
        if self.grammar is not None and not self.grammar.text:
            raise ValueError("an empty grammar means no grammar to the server; leave it out instead")


def sampling_fields(sampling: Sampling) -> dict[str, Any]:
    """The server's names for `sampling`. Raises `ValueError` for a budget below one token."""
    fields = chat_sampling(sampling.max_tokens, sampling.temperature)
    fields |= {"top_p": sampling.top_p, "top_k": sampling.top_k or -1, "sampling_seed": sampling.seed}
    return fields | ({"stop": sampling.stop} if sampling.stop else {})


def chat_sampling(max_tokens: int, temperature: float) -> dict[str, Any]:
    """The fields that a chat sets. Raises `ValueError` for a budget below one token."""
    if max_tokens < 1:
        raise ValueError(f"max_tokens: {max_tokens}; at least one token must be allowed")
    return {"max_new_tokens": max_tokens, "temperature": temperature}


def generate_body(asked: Generate, extra: Extra, request_id: str) -> bytes:
    """The body of `/generate`. Raises `ConfigError` where `extra` sets a field that is set here."""
    sampling = merged(asked.sampling | _constraint(asked), extra.sampling, "extra_body.sampling_params")
    body: dict[str, Any] = {
        "rid": request_id,
        "input_ids": asked.prompt_ids,
        "sampling_params": _NEUTRAL | sampling,
        "stream": asked.streamed,
    }
    if asked.logprobs is not None:
        body |= {
            "return_logprob": True,
            "logprob_start_len": -1,
            "top_logprobs_num": asked.logprobs.top,
            "return_text_in_logprobs": asked.logprobs.texts,
        }
    if asked.processor is not None:
        body["custom_logit_processor"] = asked.processor.code
    if asked.cache:
        body["cache_salt"] = asked.cache
    if asked.data_parallel_rank is not None:
        body["routed_dp_rank"] = asked.data_parallel_rank
    return msgspec.json.encode(merged(body, extra.body, "extra_body"))


class Score(msgspec.Struct, frozen=True):
    """A completion to be scored, with the `top` most likely tokens at each place of it; `cache` as in `Generate`."""

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    top: int = 0
    cache: str = ""


def score_body(asked: Score, extra: Extra, request_id: str) -> bytes:
    """The body of `/generate` that scores a completion: ids are joined as ids, and values begin one token before the
    completion, since the server leaves its first value out."""
    prompt_ids, completion_ids = asked.prompt_ids, asked.completion_ids
    check_ids(prompt_ids, "prompt")
    check_ids(completion_ids, "completion")
    body: dict[str, Any] = {
        "rid": request_id,
        "input_ids": [*prompt_ids, *completion_ids],
        "sampling_params": {"max_new_tokens": 0, "temperature": 0.0},
        "stream": False,
        "return_logprob": True,
        "logprob_start_len": len(prompt_ids) - 1,
        "top_logprobs_num": asked.top,
    }
    if asked.cache:
        body["cache_salt"] = asked.cache
    return msgspec.json.encode(merged(body, extra.body, "extra_body"))


def render_body(messages: Sequence[ChatMessage], model: str, extra: Extra) -> bytes:
    """The body of `/tokenize` that puts messages through the model's own chat template, as a chat completion would."""
    body = {"model": model, "messages": [msgspec.to_builtins(message) for message in messages]}
    return msgspec.json.encode(merged(body, extra.template, "extra_body"))


def tokenize_body(texts: Sequence[str], model: str) -> bytes:
    """The body of `/tokenize` for plain texts, without begin or end tokens."""
    return msgspec.json.encode({"model": model, "prompt": texts, "add_special_tokens": False})


def detokenize_body(rows: Sequence[Sequence[int]], model: str) -> bytes:
    """The body of `/detokenize` for several rows of ids; special tokens are shown."""
    return msgspec.json.encode({"model": model, "tokens": rows, "skip_special_tokens": False})


def check_ids(ids: Sequence[int], what: str) -> None:
    """Raise `ValueError` for ids that no server can take. An id past the vocabulary would end the server, so whoever
    knows its size checks that too."""
    if not ids:
        raise ValueError(f"the {what} has no tokens")
    if min(ids) < 0:
        raise ValueError(f"the {what} has a negative token id: {min(ids)}")


def _constraint(asked: Generate) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if asked.grammar is not None:
        fields[asked.grammar.kind] = asked.grammar.text
    if asked.processor is not None:
        fields["custom_params"] = asked.processor.params
    return fields
