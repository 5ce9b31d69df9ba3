"""A SGLang server as the rest of the harness sees it: answers, scores, tokens and facts."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from harness.deployment import DeploymentInfo
from harness.deployments.inside.telemetry import cost, told
from harness.deployments.refusal import check_scoring, refusal
from harness.deployments.sglang.backend import SGLangBackend
from harness.deployments.sglang.canaries import behaviour, settings
from harness.deployments.sglang.courier import Courier, NotThere
from harness.deployments.sglang.failing import failure_of
from harness.deployments.sglang.faults import BackendError, RejectedError, UnavailableError
from harness.deployments.sglang.life import Life
from harness.deployments.sglang.native import server_grammar
from harness.deployments.sglang.stops import cut_at_stop
from harness.deployments.sglang.trace import Seen, completed, first_trace
from harness.deployments.sglang.values import Generated, ServerGrammar, ServerProcessor
from harness.errors import DeploymentError, Unsupported
from harness.method import AsyncProcessor, Native, Processor, Unconstrained
from harness.preflight import Question, Verdict
from harness.prompt import Prompter
from harness.request import Completion, Cost, Failure, FailureKind, Request, Scores, Timing
from harness.vocabulary import Vocabulary

SCORING = "scores"
"""The cache name of everything that is scored, so that no arm's prompts are warmed by it."""
KEPT = 4096
"""Answers whose traces may still be completed."""


class Parts(msgspec.Struct, frozen=True):
    """What a deployment is made of. `attempts` bounds how often one request is sent."""

    info: DeploymentInfo
    server: dict[str, Any]
    vocabulary: Vocabulary
    prompter: Prompter
    backend: SGLangBackend
    life: Life
    courier: Courier
    attempts: int


class Asked(msgspec.Struct, frozen=True):
    """How a request is put to the server."""

    grammar: ServerGrammar | None = None
    processor: ServerProcessor | None = None


class SGLangDeployment:
    """A running server (a `harness.deployment.Deployment` that also explains its answers and knows canaries)."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._unscored: OrderedDict[str, tuple[tuple[int, ...], Seen]] = OrderedDict()

    @property
    def info(self) -> DeploymentInfo:
        return self.parts.info

    @property
    def restarts(self) -> int:
        """How often its server has come back after it was gone."""
        return self.parts.life.restarts

    async def generate(self, request: Request) -> Completion | Failure:
        sent_s, sent = time.time(), time.perf_counter()

        def failure(kind: FailureKind, message: str, attempts: int = 1) -> Failure:
            now = time.perf_counter() - sent
            return Failure(request.id, kind, message, Timing(sent_s, now, now), attempts)

        if (refused := refusal(request, self.info, self.parts.vocabulary)) is not None:
            return failure(*refused)
        try:
            asked = self._asked(request)
        except Unsupported as error:
            return failure("unsupported", error.reason)
        attempts = deliveries = 0
        while True:
            began = time.monotonic()
            try:
                generated = await self._generate(request, asked)
                return self._completion(request, generated, attempts + generated.attempts)
            except NotThere:
                deliveries += 1
                if deliveries > self.parts.attempts:
                    return failure("deployment", "another run puts its own processors into this server", attempts + 1)
                await self.parts.courier.deliver(self.parts.backend)
            except BackendError as error:
                attempts += error.attempts
                if isinstance(error, UnavailableError):
                    found = await self.parts.life.after_loss(began)
                    if found == "restarted" and attempts < self.parts.attempts:
                        continue
                return failure(*failure_of(error), attempts)

    async def score(self, prompt_ids: Sequence[int], continuations_ids: Sequence[Sequence[int]]) -> tuple[Scores, ...]:
        check_scoring(prompt_ids, continuations_ids, self.info, self.parts.vocabulary)
        return tuple(await asyncio.gather(*(self._score(prompt_ids, ids) for ids in continuations_ids)))

    async def tokenize(self, text: str) -> tuple[int, ...]:
        return self.parts.prompter.encode(text)

    async def explain(self, completion: Completion) -> Completion:
        """The completion with what its trace lacks, scored by a request of its own. Raises `DeploymentError`."""
        known = self._unscored.pop(completion.request_id, None)
        if known is None or completion.trace is None:
            return completion
        prompt_ids, seen = known
        scored = await self._scored(prompt_ids, seen.token_ids, top=1)
        return msgspec.structs.replace(completion, trace=completed(seen, completion.trace, scored))

    def settings(self, question: Question) -> AsyncIterator[Verdict]:
        """Whether this server is set up so that it can be measured with these arms."""
        return settings(self, question)

    def behaviour(self, question: Question) -> AsyncIterator[Verdict]:
        """Whether it does what it must."""
        return behaviour(self, question)

    def _asked(self, request: Request) -> Asked:
        """Raises `Unsupported`."""
        if request.constraint is None:
            return Asked()
        match request.method:
            case Unconstrained():
                return Asked()
            case Native(engine=engine):
                backend = str(self.parts.server.get("grammar_backend"))
                if engine != backend:
                    raise Unsupported(f"the server's grammar backend is {backend}, not {engine}")
                return Asked(grammar=server_grammar(request.constraint, self.parts.server))
            case Processor() | AsyncProcessor():
                return Asked(processor=self.parts.courier.processor(request))

    async def _generate(self, request: Request, asked: Asked) -> Generated:
        try:
            return await self.parts.backend.agenerate(
                request.prompt_ids,
                sampling=request.sampling,
                grammar=asked.grammar,
                processor=asked.processor,
                logprobs=True,
                cache=request.cache,
            )
        except RejectedError as error:
            self.parts.courier.check_there(error)
            raise

    def _completion(self, request: Request, generated: Generated, attempts: int) -> Completion:
        ids = generated.token_ids
        text, finish = self.parts.vocabulary.text(ids), generated.finish
        if (cut := cut_at_stop(text, request.sampling.stop)) is not None:
            text, finish = cut, "stop_string"
        elif finish == "stop_string":  # one that is spelled by special tokens, which stand for no text here
            text = generated.text
        processed = request.constraint is not None and isinstance(request.method, Processor | AsyncProcessor)
        rows = told(generated.meta, len(ids)) if processed else None
        seen = Seen(
            token_ids=ids,
            said=tuple(token.logprob for token in generated.tokens or ()),
            told=rows,
            masked=request.constraint is not None and not isinstance(request.method, Unconstrained),
            greedy=request.sampling.temperature == 0.0,
        )
        if not seen.whole:
            self._remember(request, seen)
        return Completion(
            request_id=request.id,
            text=text,
            token_ids=ids,
            finish=finish,
            timing=generated.timing,
            prompt_tokens=generated.prompt_tokens,
            completion_tokens=generated.completion_tokens,
            cached_tokens=generated.cached_tokens,
            trace=first_trace(seen),
            cost=Cost() if rows is None else cost(rows),
            attempts=attempts,
        )

    def _remember(self, request: Request, seen: Seen) -> None:
        self._unscored[request.id] = request.prompt_ids, seen
        if len(self._unscored) > KEPT:
            self._unscored.popitem(last=False)

    async def _score(self, prompt_ids: Sequence[int], ids: Sequence[int]) -> Scores:
        tokens = await self._scored(prompt_ids, ids, top=0)
        return Scores(tuple(ids), tuple(token.logprob for token in tokens))

    async def _scored(self, prompt_ids: Sequence[int], ids: Sequence[int], top: int) -> Any:
        for _ in range(self.parts.attempts):
            began = time.monotonic()
            try:
                return await self.parts.backend.ascore_ids(prompt_ids, ids, top_logprobs=top, cache=SCORING)
            except UnavailableError as error:
                lost = error
                await self.parts.life.after_loss(began)
            except BackendError as error:
                raise DeploymentError(f"scoring failed: {error}", "a value for each token") from error
        raise DeploymentError(f"scoring failed {self.parts.attempts} times: {lost}", "a server that lives") from lost
