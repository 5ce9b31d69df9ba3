"""Preflight on the embedded deployment, and how verdicts are said; real servers are in tests/live."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest
from embedded_models import Running, running, save_tiny

from harness.deployments.embedded.config import Embedded
from harness.errors import PreflightError
from harness.method import Native, Processor, Unconstrained
from harness.preflight import Outcome, Question, Verdict, preflight, table
from harness.prompt import Prompter
from harness.tokens import vocabulary

REFUSED = Verdict("history", "refused", "one token behind", "the whole history", "set overlap=delayed")


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = save_tiny(tmp_path_factory.mktemp("tiny"))
    with running(Embedded(model=str(folder), dtype="float32", device="cpu", threads=1, context=256)) as started:
        yield started


@pytest.fixture(scope="module")
def question(live: Running) -> Question:
    info = live.deployment.info
    prompter = Prompter.load(info.tokenizer)
    tokens = vocabulary(prompter.tokenizer, info.width, info.stop_ids)
    return Question((Unconstrained(), Native(), Processor(engine="llguidance")), prompter, tokens, 0.0)


@pytest.fixture(scope="module")
def outcome(live: Running, question: Question) -> Outcome:
    return live.runner.run(preflight(live.deployment, question))


def test_a_right_deployment_is_refused_nothing(outcome: Outcome) -> None:
    assert outcome.refused == ()
    outcome.check()


def test_the_noise_between_scores_and_generation_is_measured(outcome: Outcome) -> None:
    (noise,) = (verdict for verdict in outcome.verdicts if verdict.name == "prefill and decode")
    assert noise.verdict == "measured"
    assert "nats apart" in noise.found


def test_the_start_up_of_each_constrained_arm_is_timed(outcome: Outcome) -> None:
    assert set(outcome.startup_s) == {"native/llguidance", "processor/llguidance"}
    assert all(seconds > 0 for seconds in outcome.startup_s.values())


def test_an_arm_that_cannot_answer_is_refused(live: Running, question: Question) -> None:
    unknown = msgspec.structs.replace(question, methods=(Native("no_such_engine"),))
    found = live.runner.run(preflight(live.deployment, unknown))
    assert [verdict.name for verdict in found.refused] == ["arm native/no_such_engine"]


def test_a_refusal_says_what_was_found_what_was_wanted_and_what_to_do() -> None:
    with pytest.raises(PreflightError) as raised:
        Outcome((REFUSED,), {}).check()
    assert all(part in str(raised.value) for part in ("one token behind", "the whole history", "set overlap=delayed"))


def test_the_table_has_a_line_a_verdict_and_says_how_to_mend_what_is_refused() -> None:
    lines = table((Verdict("widths", "ok", "same"), REFUSED)).splitlines()
    assert [line.split()[0] for line in lines] == ["ok", "refused", "wanted:", "to"]


class Refusing:
    """A deployment that refuses everything by a canary of its own; asking it anything would fail the test."""

    def __init__(self, live: Running) -> None:
        self.info = live.deployment.info

    async def settings(self, question: Question) -> AsyncIterator[Verdict]:
        yield REFUSED

    async def behaviour(self, question: Question) -> AsyncIterator[Verdict]:
        raise AssertionError("nothing else is asked")
        yield REFUSED


def test_nothing_more_is_asked_of_a_deployment_that_refuses(live: Running, question: Question) -> None:
    found = live.runner.run(preflight(Refusing(live), question))  # type: ignore[arg-type]
    assert found.verdicts == (REFUSED,)


def test_a_prompt_with_two_begin_tokens_is_refused(live: Running, question: Question, tmp_path: Path) -> None:
    """BC-24: seen before a run, not in its numbers."""

    class Doubled(Prompter):
        def prompt(self, user: str, system: str | None = None):  # type: ignore[no-untyped-def]
            prompt = super().prompt(user, system)
            begin = self.tokenizer.bos_token_id
            return msgspec.structs.replace(prompt, ids=(begin, begin, *prompt.ids))

    tokenizer = Prompter.load(live.deployment.info.tokenizer).tokenizer
    tokenizer.bos_token = tokenizer.eos_token
    doubled = msgspec.structs.replace(question, prompter=Doubled(tokenizer), methods=())
    found = live.runner.run(preflight(live.deployment, doubled))
    assert "begin token" in {verdict.name for verdict in found.refused}
