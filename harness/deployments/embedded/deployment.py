"""The embedded deployment as the rest of the harness sees it: answers, scores, tokens and facts."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from harness.deployment import DeploymentInfo
from harness.deployments.embedded.batch import Batch
from harness.deployments.embedded.config import Embedded, thread_count
from harness.deployments.embedded.loading import Loaded, loaded
from harness.deployments.embedded.loop import Engine, Loop
from harness.deployments.embedded.maskers import Maskers
from harness.deployments.embedded.passes import Rules
from harness.deployments.embedded.row import Outcome, Ticket
from harness.deployments.embedded.scoring import Scorer, ScoreTicket
from harness.deployments.embedded.slots import Slots
from harness.deployments.embedded.step import Stepper
from harness.deployments.refusal import check_scoring, refusal
from harness.processors.masker import Masker
from harness.request import Request, Scores


class EmbeddedDeployment:
    """A running model in this process (a `harness.deployment.Deployment`)."""

    def __init__(self, parts: Loaded, loop: Loop, maskers: Maskers) -> None:
        self._parts, self._loop, self._maskers = parts, loop, maskers

    @property
    def info(self) -> DeploymentInfo:
        return self._parts.info

    async def generate(self, request: Request) -> Outcome:
        ticket = Ticket(request)
        if (refused := refusal(request, self._parts.info, self._parts.vocabulary)) is not None:
            return ticket.fail(*refused)
        self._loop.submit((ticket, await self._masker(request)))
        return await asyncio.wrap_future(ticket.future)

    async def score(self, prompt_ids: Sequence[int], continuations_ids: Sequence[Sequence[int]]) -> tuple[Scores, ...]:
        check_scoring(prompt_ids, continuations_ids, self._parts.info, self._parts.vocabulary)
        ticket = ScoreTicket(tuple(prompt_ids), tuple(map(tuple, continuations_ids)))
        self._loop.submit(ticket)
        return await asyncio.wrap_future(ticket.future)

    async def tokenize(self, text: str) -> tuple[int, ...]:
        return self._parts.prompter.encode(text)

    async def _masker(self, request: Request) -> Masker | None:
        if request.constraint is None:
            return None
        made = self._maskers.made(request.method)
        return made if made is not None else await asyncio.to_thread(self._maskers.make, request.method)


@asynccontextmanager
async def started(config: Embedded) -> AsyncIterator[EmbeddedDeployment]:
    """Load the model and run its loop until the block ends."""
    parts = await asyncio.to_thread(loaded, config)
    maskers = Maskers(parts.vocabulary)
    loop = Loop(engine(parts, config), thread_count(config.threads))
    try:
        yield EmbeddedDeployment(parts, loop, maskers)
    finally:
        await asyncio.to_thread(loop.stop)
        await asyncio.to_thread(maskers.stop)


def engine(parts: Loaded, config: Embedded) -> Engine:
    """What a loop drives: slots, batch, steps and scores on a loaded model."""
    places = config.max_batch + max(config.kept, parts.model.beside)
    slots = Slots(parts.model.store(places), places, parts.info.context, reuse=not config.exact)
    rules = Rules(config.prefill_chunk, config.exact, parts.model.beside)
    batch = Batch(slots, parts.vocabulary, rules, config.max_batch, config.seed)
    scorer = Scorer(parts.model, slots, config.prefill_chunk, reuse=not config.exact)
    return Engine(batch, Stepper(parts.model, slots), scorer)
