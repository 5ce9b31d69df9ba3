"""Each operation of the client, step by step, as a generator: it yields what to send and is handed what came of it.

So one text serves the synchronous and the asynchronous face, and runs in tests without a socket or a clock.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from harness.deployments.sglang.deliver import Delivered, Flow, deliver
from harness.deployments.sglang.server import check_server, without_secrets
from harness.deployments.sglang.values import (
    ChatMessage,
    ChatResponse,
    Generated,
    ScoringResponse,
    ServerGrammar,
    Token,
    TokenLogprob,
)
from harness.deployments.sglang.wire import encode, join
from harness.deployments.sglang.wire.answer import Answer, finish, generated_ids, read_answer, timing
from harness.deployments.sglang.wire.call import Call
from harness.deployments.sglang.wire.extra import Extra
from harness.deployments.sglang.wire.labels import label_grammar, said_label
from harness.deployments.sglang.wire.logprobs import output_tokens, scored_tokens
from harness.deployments.sglang.wire.retry import Retries


class Flows:
    """The operations against one server. `new_id` gives request ids that are all of one length and all different:
    SGLang aborts by prefix, so that an id that begins another one would end that one too."""

    def __init__(self, model: str, max_tokens: int, extra: Extra, new_id: Callable[[], str]) -> None:
        self.retries = Retries()
        self._model = model
        self._max_tokens = max_tokens
        self._extra = extra
        self._new_id = new_id
        self._checked = False
        self._generate_call((0,), encode.chat_sampling(max_tokens, 0.0))("")

    def server_info(self) -> Flow[dict[str, Any]]:
        """The server's own account of itself, without secrets; checked once."""
        delivered = yield from self._deliver(lambda _: Call("GET", "/server_info"))
        if not self._checked:
            check_server(delivered.answer, self._model)
            self._checked = True
        info: dict[str, Any] = without_secrets(delivered.answer)
        return info

    def chat(
        self,
        messages: Sequence[ChatMessage],
        temperature: float,
        labels: Sequence[str] | None,
        logprobs: encode.Logprobs | None,
    ) -> Flow[ChatResponse]:
        grammar = None if labels is None else label_grammar(labels)
        sampling = encode.chat_sampling(self._max_tokens, temperature)
        prompt_ids = yield from self._render(messages)
        call = self._generate_call(prompt_ids, sampling, grammar=grammar, logprobs=logprobs)
        delivered = yield from self._deliver(call)
        answer = read_answer(delivered.answer, len(prompt_ids))
        end, token_ids = finish(answer), generated_ids(answer)
        return ChatResponse(
            text=answer.text,
            label=None if labels is None else said_label(answer.text, labels, end),
            finish=end,
            token_ids=token_ids,
            tokens=_tokens(answer, token_ids, logprobs, greedy=temperature == 0.0),
            prompt_ids=prompt_ids,
            completion_tokens=len(token_ids),
            cached_tokens=answer.meta.cached_tokens,
            request_id=delivered.request_id,
            attempts=delivered.attempts,
        )

    def generate(self, asked: encode.Generate) -> Flow[Generated]:
        yield from self._greet()
        delivered = yield from self._deliver(lambda rid: _post_generate(asked, self._extra, rid))
        answer = read_answer(delivered.answer, len(asked.prompt_ids))
        token_ids = generated_ids(answer)
        return Generated(
            text=answer.text,
            token_ids=token_ids,
            finish=finish(answer),
            timing=timing(delivered.reply, len(token_ids)),
            tokens=_tokens(answer, token_ids, asked.logprobs, greedy=asked.sampling["temperature"] == 0.0),
            prompt_tokens=len(asked.prompt_ids),
            completion_tokens=len(token_ids),
            cached_tokens=answer.meta.cached_tokens,
            meta=answer.raw_meta,
            request_id=delivered.request_id,
            attempts=delivered.attempts,
        )

    def score(self, messages: Sequence[ChatMessage], completion: str) -> Flow[ScoringResponse]:
        if not completion:
            raise ValueError("the completion is empty: there is nothing to score")
        prompt_ids = yield from self._render(messages)
        spelled = yield from self._continue(prompt_ids, completion)
        delivered, scored = yield from self._score(encode.Score(prompt_ids, tuple(token.id for token in spelled)))
        named = [msgspec.structs.replace(value, text=token.text) for value, token in zip(scored, spelled, strict=True)]
        return ScoringResponse(
            completion=completion,
            tokens=tuple(named),
            prompt_ids=prompt_ids,
            cached_tokens=delivered.answer["meta_info"].get("cached_tokens"),
            request_id=delivered.request_id,
            attempts=delivered.attempts,
        )

    def score_ids(self, asked: encode.Score) -> Flow[tuple[TokenLogprob, ...]]:
        yield from self._greet()
        _, scored = yield from self._score(asked)
        return scored

    def tokenize(self, text: str, context: str | None) -> Flow[list[Token]]:
        yield from self._greet()
        if not text:
            return []
        if context is not None:
            (before,) = yield from self._ids([context])
            return (yield from self._continue(before, text))
        (ids,) = yield from self._ids([text])
        return join.tokens(ids, (yield from self._texts([(token,) for token in ids])))

    def _greet(self) -> Flow[None]:
        if not self._checked:
            yield from self.server_info()

    def _render(self, messages: Sequence[ChatMessage]) -> Flow[tuple[int, ...]]:
        if not messages:
            raise ValueError("there are no messages")
        yield from self._greet()
        body = encode.render_body(messages, self._model, self._extra)
        delivered = yield from self._deliver(lambda _: Call("POST", "/tokenize", body))
        return join.read_rendered(delivered.reply.body)

    def _continue(self, before: tuple[int, ...], text: str) -> Flow[list[Token]]:
        """The tokens with which `text` continues `before`, each with its own text."""
        alone, anchor, anchored = yield from self._ids([text, encode.ANCHOR, encode.ANCHOR + text])
        ways = join.candidates(alone, anchor, anchored)
        first, *whole = yield from self._texts([before, *(before + ids for ids in ways)])
        ids = join.exact(ways, text, first, whole)
        return join.tokens(ids, (yield from self._texts([(token,) for token in ids])))

    def _ids(self, texts: Sequence[str]) -> Flow[list[tuple[int, ...]]]:
        body = encode.tokenize_body(texts, self._model)
        delivered = yield from self._deliver(lambda _: Call("POST", "/tokenize", body))
        return join.read_rows(delivered.reply.body, len(texts))

    def _texts(self, rows: Sequence[tuple[int, ...]]) -> Flow[list[str]]:
        body = encode.detokenize_body(rows, self._model)
        delivered = yield from self._deliver(lambda _: Call("POST", "/detokenize", body))
        return join.read_texts(delivered.reply.body, len(rows))

    def _score(self, asked: encode.Score) -> Flow[tuple[Delivered, tuple[TokenLogprob, ...]]]:
        def call(request_id: str) -> Call:
            return Call("POST", "/generate", encode.score_body(asked, self._extra, request_id))

        delivered = yield from self._deliver(call)
        meta = read_answer(delivered.answer, len(asked.prompt_ids) + len(asked.completion_ids)).meta
        rows, tops = meta.input_token_logprobs, meta.input_top_logprobs
        return delivered, scored_tokens(rows, asked.completion_ids, tops, with_top=asked.top > 0)

    def _generate_call(
        self,
        prompt_ids: tuple[int, ...],
        sampling: dict[str, Any],
        grammar: ServerGrammar | None = None,
        logprobs: encode.Logprobs | None = None,
    ) -> Callable[[str], Call]:
        asked = encode.Generate(prompt_ids, sampling, grammar=grammar, logprobs=logprobs)
        return lambda request_id: _post_generate(asked, self._extra, request_id)

    def _deliver(self, call: Callable[[str], Call]) -> Flow[Delivered]:
        return (yield from deliver(call, self.retries, self._new_id))


def _post_generate(asked: encode.Generate, extra: Extra, request_id: str) -> Call:
    return Call("POST", "/generate", encode.generate_body(asked, extra, request_id), streamed=asked.streamed)


def _tokens(
    answer: Answer, token_ids: Sequence[int], asked: encode.Logprobs | None, *, greedy: bool
) -> tuple[TokenLogprob, ...] | None:
    if asked is None:
        return None
    meta = answer.meta
    rows, tops = meta.output_token_logprobs, meta.output_top_logprobs
    return output_tokens(rows, tops, token_ids, with_top=asked.top > 0, greedy=greedy)
