"""Preflight against real servers that must be refused, and one that must not."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from embedded_models import Running, running, save_tiny

from harness.deployments.sglang.config import SGLang, SGLangLaunch
from harness.deployments.sglang.launch import Server
from harness.errors import PreflightError
from harness.method import AsyncProcessor, Method, Native, Processor, Unconstrained
from harness.preflight import Outcome, Question, preflight

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]  # servers start slowly beside other work


def outcome(live: Running, *methods: Method) -> Outcome:
    parts = live.deployment.parts  # type: ignore[attr-defined]
    return live.runner.run(preflight(live.deployment, Question(methods, parts.prompter, parts.vocabulary, 0.0)))


def refused(live: Running, *methods: Method) -> dict[str, str]:
    return {verdict.name: verdict.found for verdict in outcome(live, *methods).refused}


@pytest.fixture(scope="module")
def right(server: Server) -> Iterator[Running]:
    with running(SGLang(url=server.base_url)) as started:
        yield started


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def stale(tiny: Path) -> Iterator[Running]:
    """A server with SGLang's default overlap schedule."""
    config = SGLangLaunch(
        python=".venv-sglang/bin/python",
        model=str(tiny),
        device="cpu",
        dtype="float32",
        grammar_backend="llguidance",
        overlap="on",
        ready_within_s=300.0,
    )
    with running(config) as started:
        yield started


def test_a_right_server_is_refused_nothing(right: Running) -> None:
    found = outcome(right, Unconstrained(), Native("xgrammar"), Processor(), AsyncProcessor(engine="llguidance"))
    assert found.refused == ()
    verdicts = {verdict.name: verdict.verdict for verdict in found.verdicts}
    assert verdicts["history, mixed with a grammar"] == "ok"
    assert verdicts["prefill and decode"] == "measured"
    assert set(found.startup_s) == {"native/xgrammar", "processor/lm_format_enforcer", "async/llguidance"}


def test_the_default_overlap_schedule_is_refused_for_processors(stale: Running) -> None:
    """BC-34: alone and beside a grammar's traffic, with what to do."""
    found = outcome(stale, Unconstrained(), Processor(engine="llguidance"))
    assert {"history", "history, mixed with a grammar"} <= {verdict.name for verdict in found.refused}
    with pytest.raises(PreflightError, match="SGLANG_ENABLE_DELAY_SAMPLE=1"):
        found.check()


def test_the_default_overlap_schedule_is_fine_without_processors(stale: Running) -> None:
    assert refused(stale, Unconstrained(), Native()) == {}


def test_an_engine_that_the_servers_environment_lacks_is_refused(right: Running) -> None:
    assert list(refused(right, Processor(engine="outlines"))) == ["outlines in the server"]


def test_another_grammar_backend_than_the_arms_is_refused(right: Running) -> None:
    assert refused(right, Native("outlines")) == {"grammar backend": "the server's is xgrammar"}


def test_another_tokenizer_than_the_servers_is_refused(server: Server, tiny: Path) -> None:
    with running(SGLang(url=server.base_url, tokenizer=str(tiny))) as wrong:
        assert "tokenizer" in refused(wrong, Unconstrained())


def test_a_server_that_takes_no_processors_is_refused(tiny: Path) -> None:
    config = SGLangLaunch(
        python=".venv-sglang/bin/python",
        model=str(tiny),
        device="cpu",
        dtype="float32",
        custom_processors=False,
        ready_within_s=300.0,
    )
    with running(config) as plain:
        assert list(refused(plain, Processor())) == ["processors allowed"]
        assert refused(plain, Unconstrained(), Native("xgrammar")) == {}
