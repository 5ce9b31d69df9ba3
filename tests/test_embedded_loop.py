"""The decoding thread: nobody waits for ever, and nothing stays behind of those who left."""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import wait
from pathlib import Path

import pytest
import torch
from embedded_models import free, running, save_tiny, steered

from harness.constraint import Labels, Regex
from harness.deployments.embedded.config import Embedded
from harness.deployments.embedded.deployment import engine
from harness.deployments.embedded.loading import Loaded, loaded
from harness.deployments.embedded.loop import Loop
from harness.deployments.embedded.native import NativeMasker
from harness.deployments.embedded.row import Ticket
from harness.deployments.embedded.scoring import ScoreTicket
from harness.errors import DeploymentError
from harness.masks import engine as mask_engine
from harness.method import Native
from harness.processors.masker import Steering
from harness.request import Completion, Request


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Embedded:
    folder = save_tiny(tmp_path_factory.mktemp("tiny"))
    return Embedded(str(folder), dtype="float32", device="cpu", threads=1, max_batch=2, context=128)


@pytest.fixture(scope="module")
def parts(config: Embedded) -> Loaded:
    return loaded(config)


class Dying:
    """A masker whose masks end the loop."""

    def open(self, request: Request) -> None: ...

    def ready(self, request_id: str) -> bool:
        return True

    def compile_s(self, request_id: str) -> float:
        return 0.0

    def start(self, request_ids: Sequence[str]) -> None: ...

    def collect(self, request_ids: Sequence[str], logits: torch.Tensor) -> Mapping[str, Steering]:
        raise MemoryError("no room for masks")

    def token(self, request_id: str, token: int) -> None: ...

    def close(self, request_id: str) -> None: ...

    def stop(self) -> None: ...


def test_when_the_loop_dies_everybody_who_waits_is_told_and_later_callers_too(config: Embedded, parts: Loaded) -> None:
    loop = Loop(engine(parts, config), 1)
    calm = [Ticket(free(f"calm {i}", (1, 2), tokens=100)) for i in range(4)]
    for ticket in calm:
        loop.submit((ticket, None))
    fatal = Ticket(steered("fatal", (1, 2), Labels(("a",)), Native()))
    loop.submit((fatal, Dying()))
    score = ScoreTicket((1,), ((2,),))
    done = [ticket.future for ticket in (*calm, fatal)]
    wait(done, timeout=60)
    assert all("no room for masks" in str(future.exception(timeout=0)) for future in done if future.exception())
    assert isinstance(fatal.future.exception(), DeploymentError)
    with pytest.raises(DeploymentError, match="decoding loop died"):
        loop.submit(score)
    loop.stop()


def test_stopping_tells_those_who_still_wait(config: Embedded, parts: Loaded) -> None:
    loop = Loop(engine(parts, config), 1)
    tickets = [Ticket(free(f"t{i}", (1, 2), tokens=100)) for i in range(5)]
    for ticket in tickets:
        loop.submit((ticket, None))
    loop.stop()
    with pytest.raises(DeploymentError, match="stopped"):
        tickets[-1].future.result(timeout=0)
    assert all(ticket.future.done() for ticket in tickets)


def test_nothing_is_left_of_requests_that_ended_or_were_cancelled(config: Embedded, parts: Loaded) -> None:
    """BC-35: state is freed on finish and on abort."""
    masker = NativeMasker(mask_engine("llguidance"), parts.vocabulary)
    driven = engine(parts, config)
    loop = Loop(driven, 1)
    constraint = Regex("[ab]{90}")
    tickets = [Ticket(steered(f"r{i}", (1, 2), constraint, Native(), tokens=10 if i < 2 else 99)) for i in range(8)]
    for ticket in tickets:
        loop.submit((ticket, masker))
    for ticket in tickets[2:]:
        ticket.future.cancel()
    assert all(isinstance(ticket.future.result(timeout=60), Completion) for ticket in tickets[:2])
    last = Ticket(free("last", (1, 2)))
    loop.submit((last, None))
    last.future.result(timeout=60)
    assert len(masker) == 0
    assert driven.unanswered == []
    loop.stop()
    masker.stop()


def test_a_deployment_that_cannot_be_loaded_says_so_before_the_first_request(tmp_path: Path) -> None:
    with pytest.raises(DeploymentError, match="cannot load"), running(Embedded(str(tmp_path))):
        pass


def test_a_deployment_can_be_used_from_several_event_loops(config: Embedded) -> None:
    with running(config) as live:
        first = live.completions(free("here", (1, 2)))
        other = asyncio.new_event_loop()
        second = other.run_until_complete(live.deployment.generate(free("there", (1, 2))))
        other.close()
    assert isinstance(second, Completion)
    assert second.token_ids == first[0].token_ids
