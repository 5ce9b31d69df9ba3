"""`SGLangBackend`, the client: every operation in a synchronous and an asynchronous form.

Which log-probabilities are which: those of `chat` and `generate` are taken AFTER the constraint's mask and after
temperature, those of `score` BEFORE any mask, at temperature 1. They are different quantities; never compare them.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from harness.deployments.sglang.faces import AsyncFace, SyncFace
from harness.deployments.sglang.flows import Flows
from harness.deployments.sglang.values import (
    ChatMessage,
    ChatResponse,
    Generated,
    ScoringResponse,
    ServerGrammar,
    ServerProcessor,
    Token,
    TokenLogprob,
)
from harness.deployments.sglang.wire.encode import Generate, Logprobs, Score, sampling_fields
from harness.deployments.sglang.wire.extra import sorted_extra
from harness.deployments.sglang.wire.retry import Retries
from harness.errors import ConfigError
from harness.request import Sampling


class LLMBackend(ABC):
    """A model that chats, scores completions and tokenizes. `supports_bare_label_constraint` says whether an answer can
    be constrained to a label alone, without a wrapping such as JSON."""

    supports_bare_label_constraint: bool = False

    @abstractmethod
    def chat(
        self,
        messages: Sequence[ChatMessage],
        *,
        temperature: float = 0.0,
        constrain_labels: Sequence[str] | None = None,
        logprobs: bool = False,
        top_logprobs: int = 5,
    ) -> ChatResponse:
        """Answer a conversation."""

    @abstractmethod
    def score(self, messages: Sequence[ChatMessage], completion: str) -> ScoringResponse:
        """How likely the model finds `completion` as the answer to a conversation."""

    @abstractmethod
    def tokenize(self, text: str, *, context: str | None = None) -> list[Token]:
        """The tokens of `text`, or those with which it continues `context`."""

    @abstractmethod
    async def achat(
        self,
        messages: Sequence[ChatMessage],
        *,
        temperature: float = 0.0,
        constrain_labels: Sequence[str] | None = None,
        logprobs: bool = False,
        top_logprobs: int = 5,
    ) -> ChatResponse:
        """As `chat`."""

    @abstractmethod
    async def ascore(self, messages: Sequence[ChatMessage], completion: str) -> ScoringResponse:
        """As `score`."""

    @abstractmethod
    async def atokenize(self, text: str, *, context: str | None = None) -> list[Token]:
        """As `tokenize`."""


class SGLangBackend(LLMBackend):
    """A client of the SGLang server at `base_url`, which must serve `model`.

    `timeout` bounds one attempt, in seconds; `max_tokens` bounds a chat's answer. `extra_body` adds fields to requests:
    those of the chat template, those of `/generate`, and its `sampling_params`; one that the client sets itself is an
    error. What is worth it is sent again as `retries` says, which may be set anew.

    Raises `ConfigError` for what can be seen at once. Requests raise a `BackendError` (`RejectedError`,
    `UnavailableError`, `TimedOutError`, `UnsoundAnswerError`), the first one also `DeploymentError` where the server
    serves another model; an unknown server version is warned about.
    """

    supports_bare_label_constraint = True

    def __init__(
        self,
        model: str,
        base_url: str = "http://localhost:30000/v1",
        *,
        api_key: str | None = None,
        timeout: float = 120.0,
        max_tokens: int = 256,
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise ConfigError(f"base_url: {base_url!r}", "http://host:port/v1", "mend the URL")
        if timeout <= 0.0:
            raise ConfigError(f"timeout: {timeout}", "more than 0 s", "mend the value")
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        if api_key is not None:
            headers["authorization"] = f"Bearer {api_key}"
        url = base_url.rstrip("/").removesuffix("/v1")
        self._flows = Flows(model, max_tokens, sorted_extra(extra_body), lambda: uuid4().hex)
        self._sync = SyncFace(url, headers, timeout)
        self._async = AsyncFace(url, headers, timeout)

    @property
    def retries(self) -> Retries:
        """How often a request is sent, and how long to wait in between."""
        return self._flows.retries

    @retries.setter
    def retries(self, retries: Retries) -> None:
        self._flows.retries = retries

    def chat(
        self,
        messages: Sequence[ChatMessage],
        *,
        temperature: float = 0.0,
        constrain_labels: Sequence[str] | None = None,
        logprobs: bool = False,
        top_logprobs: int = 5,
    ) -> ChatResponse:
        """Answer `messages`, put through the model's own chat template. `constrain_labels` makes the answer exactly one
        of these texts. `logprobs` asks for log-probabilities with the `top_logprobs` most likely tokens beside each:
        taken AFTER the mask of the labels and after temperature. Raises `ConstraintError` for labels that are empty,
        doubled, or padded with white space."""
        asked = Logprobs(top_logprobs, texts=True) if logprobs else None
        return self._sync.run(self._flows.chat(messages, temperature, constrain_labels, asked))

    async def achat(
        self,
        messages: Sequence[ChatMessage],
        *,
        temperature: float = 0.0,
        constrain_labels: Sequence[str] | None = None,
        logprobs: bool = False,
        top_logprobs: int = 5,
    ) -> ChatResponse:
        """As `chat`."""
        asked = Logprobs(top_logprobs, texts=True) if logprobs else None
        return await self._async.run(self._flows.chat(messages, temperature, constrain_labels, asked))

    def score(self, messages: Sequence[ChatMessage], completion: str) -> ScoringResponse:
        """The model's own log-probability of each token of `completion` as the answer to `messages`: BEFORE any mask,
        at temperature 1. The prompt is the one that `chat` sends, and the completion is joined to it as ids. Raises
        `ValueError` for an empty completion, `UnsoundAnswerError` where a value is missing."""
        return self._sync.run(self._flows.score(messages, completion))

    async def ascore(self, messages: Sequence[ChatMessage], completion: str) -> ScoringResponse:
        """As `score`."""
        return await self._async.run(self._flows.score(messages, completion))

    def tokenize(self, text: str, *, context: str | None = None) -> list[Token]:
        """The tokens of `text`, without begin or end tokens; with `context`, those with which `text` continues it (none
        spans the join, and context and tokens read back as context and text). Special tokens that stand in the text are
        read as such, as the server does everywhere."""
        return self._sync.run(self._flows.tokenize(text, context))

    async def atokenize(self, text: str, *, context: str | None = None) -> list[Token]:
        """As `tokenize`."""
        return await self._async.run(self._flows.tokenize(text, context))

    def generate(
        self,
        prompt_ids: Sequence[int],
        *,
        sampling: Sampling,
        grammar: ServerGrammar | None = None,
        processor: ServerProcessor | None = None,
        logprobs: bool = False,
        top_logprobs: int = 0,
        cache: str = "",
        data_parallel_rank: int | None = None,
    ) -> Generated:
        """Continue `prompt_ids`, streamed, on the native endpoint. Log-probabilities are taken AFTER the mask of
        grammar and processor and after temperature. Prompt prefixes are reused among requests with the same `cache`
        alone; `data_parallel_rank` picks one copy of a data-parallel server. Ids past the model's vocabulary end the
        server: check them first."""
        logging = Logprobs(top_logprobs) if logprobs else None
        asked = _generation(prompt_ids, sampling, grammar, processor, logging, cache, data_parallel_rank)
        return self._sync.run(self._flows.generate(asked))

    async def agenerate(
        self,
        prompt_ids: Sequence[int],
        *,
        sampling: Sampling,
        grammar: ServerGrammar | None = None,
        processor: ServerProcessor | None = None,
        logprobs: bool = False,
        top_logprobs: int = 0,
        cache: str = "",
        data_parallel_rank: int | None = None,
    ) -> Generated:
        """As `generate`."""
        logging = Logprobs(top_logprobs) if logprobs else None
        asked = _generation(prompt_ids, sampling, grammar, processor, logging, cache, data_parallel_rank)
        return await self._async.run(self._flows.generate(asked))

    def score_ids(
        self, prompt_ids: Sequence[int], completion_ids: Sequence[int], *, top_logprobs: int = 0, cache: str = ""
    ) -> tuple[TokenLogprob, ...]:
        """As `score`, for ids: one unmasked value for each id of the completion, with the most likely tokens at its
        place. `cache` as in `generate`."""
        asked = Score(tuple(prompt_ids), tuple(completion_ids), top_logprobs, cache)
        return self._sync.run(self._flows.score_ids(asked))

    async def ascore_ids(
        self, prompt_ids: Sequence[int], completion_ids: Sequence[int], *, top_logprobs: int = 0, cache: str = ""
    ) -> tuple[TokenLogprob, ...]:
        """As `score_ids`."""
        asked = Score(tuple(prompt_ids), tuple(completion_ids), top_logprobs, cache)
        return await self._async.run(self._flows.score_ids(asked))

    def server_info(self) -> dict[str, Any]:
        """What the server says of itself (`/server_info`), secrets left out."""
        return self._sync.run(self._flows.server_info())

    async def aserver_info(self) -> dict[str, Any]:
        """As `server_info`."""
        return await self._async.run(self._flows.server_info())

    def close(self) -> None:
        """Close the connections of the synchronous calls."""
        self._sync.close()

    async def aclose(self) -> None:
        """Close all connections."""
        self._sync.close()
        await self._async.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _generation(
    prompt_ids: Sequence[int],
    sampling: Sampling,
    grammar: ServerGrammar | None,
    processor: ServerProcessor | None,
    logprobs: Logprobs | None,
    cache: str,
    data_parallel_rank: int | None,
) -> Generate:
    ids, fields = tuple(prompt_ids), sampling_fields(sampling)
    return Generate(ids, fields, grammar, processor, logprobs, True, cache, data_parallel_rank)
