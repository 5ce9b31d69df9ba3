"""The deployment on a real server: what its numbers mean, what it shares, and what it does when the server dies."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest
from embedded_models import Running, free, running, save_tiny, steered

from harness.constraint import Labels
from harness.deployments.sglang.config import SGLang, SGLangLaunch
from harness.deployments.sglang.deployment import SGLangDeployment
from harness.deployments.sglang.launch import Server
from harness.deployments.sglang.life import Launched
from harness.errors import DeploymentError
from harness.method import AsyncProcessor, Method, Native, Processor, Unconstrained
from harness.request import Completion, Failure, Request, Trace

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]  # servers start slowly beside other work

CLOSE = 2e-3
"""Two ways to one log-probability, in float32 (nats)."""
LABELS = Labels(("no", "no evidence", "perhaps"))
METHODS: list[Method] = [Native("xgrammar"), Processor(engine="llguidance"), AsyncProcessor()]


@pytest.fixture(scope="module")
def live(server: Server) -> Iterator[Running]:
    with running(SGLang(url=server.base_url)) as started:
        yield started


def deployed(live: Running) -> SGLangDeployment:
    assert isinstance(live.deployment, SGLangDeployment)
    return live.deployment


def explained(live: Running, request: Request) -> tuple[Completion, Trace, list[float]]:
    """The answer, its whole trace, and what scoring says of its tokens."""
    (answer,) = live.completions(request)
    answer = live.runner.run(deployed(live).explain(answer))
    (scores,) = live.score(request.prompt_ids, answer.token_ids)
    assert answer.trace is not None
    return answer, answer.trace, list(scores.logprobs)


def differences(first: tuple[float | None, ...], second: tuple[float | None, ...]) -> list[float]:
    return [a - b for a, b in zip(first, second, strict=True) if a is not None and b is not None]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_traces_hold_the_unmasked_and_the_masked_log_probability(live: Running, method: Method) -> None:
    """BC-31: raw is what scoring says, masked is raw over the mass, and a forced end has probability 1."""
    answer, trace, scores = explained(live, steered("t", live.ids("Is it true?"), LABELS, method))
    assert answer.text in LABELS.labels
    assert trace.raw_logprob == pytest.approx(scores, abs=CLOSE)
    mass = [m for m in trace.mass if m is not None]
    assert len(mass) == len(scores)
    gaps = differences(trace.raw_logprob, trace.masked_logprob)
    assert [pow(2.718281828459045, gap) for gap in gaps] == pytest.approx(mass, abs=CLOSE)
    assert trace.masked_logprob[-1] == pytest.approx(0.0, abs=1e-4)
    assert all(best is not None and best >= own - CLOSE for best, own in zip(trace.wanted_logprob, scores, strict=True))


def test_all_arms_say_the_same_of_the_same_tokens(live: Running) -> None:
    """BC-31: native, processor and async agree to four digits on every column that all have."""
    traces = [explained(live, steered(f"s{i}", live.ids("Is it so?"), LABELS, m))[1] for i, m in enumerate(METHODS)]
    for column in ("raw_logprob", "masked_logprob", "mass", "wanted_logprob"):
        first, *others = (getattr(trace, column) for trace in traces)
        assert all(other == pytest.approx(first, abs=CLOSE) for other in others)
    assert traces[0].wanted == traces[1].wanted == traces[2].wanted


@pytest.mark.parametrize("method", [Unconstrained(), *METHODS], ids=lambda method: type(method).__name__)
def test_temperature_never_mixes_into_a_trace(live: Running, method: Method) -> None:
    """BC-31: what the server reports at another temperature is another quantity; it is scored, or not known."""
    warm = steered("w", live.ids("Is it warm?"), LABELS, method)
    warm = msgspec.structs.replace(warm, sampling=msgspec.structs.replace(warm.sampling, temperature=1.7))
    _, trace, scores = explained(live, warm)
    assert trace.raw_logprob == pytest.approx(scores, abs=CLOSE)
    match method:
        case Unconstrained():
            assert trace.masked_logprob == trace.raw_logprob
        case Native():
            assert set(trace.masked_logprob) == {None}
        case _:
            gaps = differences(trace.raw_logprob, trace.masked_logprob)
            assert [pow(2.718281828459045, gap) for gap in gaps] == pytest.approx(list(trace.mass), abs=CLOSE)


def test_prefixes_are_shared_inside_one_cache_name_alone(live: Running) -> None:
    prompt = live.ids("a prompt that nobody else asks: " + "one two three four five " * 6)
    first, again, other = (
        live.completions(free(f"c{i}", prompt, tokens=2, cache=cache))[0] for i, cache in enumerate(("x", "x", "y"))
    )
    assert (first.cached_tokens, other.cached_tokens) == (0, 0)
    assert again.cached_tokens == len(prompt) - 1


def test_scoring_warms_no_arm(live: Running) -> None:
    prompt = live.ids("another prompt that nobody asks: " + "six seven eight nine ten " * 6)
    live.score(prompt, live.ids(" yes"))
    (answer,) = live.completions(free("cold", prompt, tokens=2, cache="z"))
    assert answer.cached_tokens == 0


def test_a_native_arm_of_another_engine_than_the_servers_is_no_answer(live: Running) -> None:
    (answer,) = live.ask(steered("o", live.ids("A"), LABELS, Native("outlines")))
    assert isinstance(answer, Failure)
    assert "xgrammar" in answer.message


def test_the_manifest_gets_no_secret(live: Running) -> None:
    server = live.deployment.info.details["server"]
    assert server["version"] == "0.5.23"
    assert not [key for key in server if "key" in key or "password" in key]


# A server that dies


def children(life: Launched) -> list[psutil.Process]:
    assert life._server is not None
    return psutil.Process(life._server.guard_pid).children(recursive=True)


def test_a_killed_server_is_started_again_and_lost_requests_are_asked_again(tmp_path: Path) -> None:
    config = SGLangLaunch(
        python=".venv-sglang/bin/python",
        model=str(save_tiny(tmp_path / "tiny")),
        device="cpu",
        dtype="float32",
        grammar_backend="llguidance",
        restarts=1,
        ready_within_s=300.0,
    )
    with running(config) as live:
        life = deployed(live).parts.life
        assert isinstance(life, Launched)
        born = children(life)
        prompt = live.ids("the quick brown fox")

        async def kill() -> None:
            await asyncio.sleep(0.7)
            os.kill(next(p.pid for p in children(life)), signal.SIGKILL)

        async def under_fire() -> list[Completion | Failure]:
            method = Processor(engine="llguidance")
            rows = [steered(f"k{i}", prompt, Labels(("ab" * 150,)), method, tokens=350) for i in range(4)]
            killing = asyncio.ensure_future(kill())
            answers = await asyncio.gather(*(live.deployment.generate(row) for row in rows))
            await killing
            return list(answers)

        answers = live.runner.run(under_fire())
        assert [a.text for a in answers if isinstance(a, Completion)] == ["ab" * 150] * 4
        assert any(answer.attempts > 1 for answer in answers)
        born += children(life)
        os.kill(next(p.pid for p in children(life)), signal.SIGKILL)
        with pytest.raises(DeploymentError, match="died, 2 times"):
            live.ask(free("too often", prompt))
    assert [process for process in born if process.is_running() and process.status() != psutil.STATUS_ZOMBIE] == []
