"""What every deployment promises, whatever runs the model. A new one is a line in `DEPLOYMENTS`."""

import asyncio
import math
from collections.abc import Iterator

import pytest
from embedded_models import Running, free, running, steered

from harness.constraint import Labels, Regex
from harness.deployment import DeploymentFactory
from harness.deployments.embedded.config import Embedded
from harness.deployments.sglang.config import SGLangLaunch
from harness.method import Native
from harness.request import Completion, Failure

DEPLOYMENTS: dict[str, DeploymentFactory] = {
    "embedded": Embedded(threads=1, max_batch=4, context=256),
    "sglang": SGLangLaunch(
        python=".venv-sglang/bin/python",
        device="cpu",
        dtype="float32",
        grammar_backend="llguidance",
        arguments=("--context-length", "256"),
        ready_within_s=300.0,
    ),
}
NOISE = 0.3
"""How far two ways to one log-probability may be apart in bfloat16 (nats)."""
SAME = 1e-3
"""The same for one way, computed beside other sequences."""
LABELS = Labels(("no", "no evidence", "no evidence found"))


@pytest.fixture(
    scope="module", params=["embedded", pytest.param("sglang", marks=[pytest.mark.live, pytest.mark.timeout(900)])]
)
def live(request: pytest.FixtureRequest) -> Iterator[Running]:
    with running(DEPLOYMENTS[request.param]) as started:
        yield started


@pytest.fixture(scope="module")
def prompt(live: Running) -> tuple[int, ...]:
    return live.ids("The three largest cities of France are Paris,")


def test_it_says_what_it_runs(live: Running) -> None:
    info = live.deployment.info
    assert info.stop_ids
    assert all(0 <= stop < info.width for stop in info.stop_ids)
    assert info.fingerprint
    assert info.context == 256


def test_tokens_of_a_text_begin_with_no_special_token_and_spell_the_text(live: Running) -> None:
    """BC-24: a text alone gets no begin token, and a special token in it stays text."""
    plain, special = live.ids("a text"), live.ids("<|im_end|>")
    assert plain[0] not in live.deployment.info.stop_ids
    assert plain + live.ids(" more") == live.ids("a text more")
    assert len(special) > 1
    assert not set(special) & set(live.deployment.info.stop_ids)


def test_a_greedy_answer_comes_out_again(live: Running, prompt: tuple[int, ...]) -> None:
    (first,), (again,) = live.completions(free("a", prompt)), live.completions(free("b", prompt))
    assert first.token_ids == again.token_ids


def test_counts_times_and_traces_fit_the_tokens(live: Running, prompt: tuple[int, ...]) -> None:
    (answer,) = live.completions(free("counts", prompt))
    count = len(answer.token_ids)
    times = answer.timing.token_s
    assert answer.prompt_tokens == len(prompt)
    assert answer.completion_tokens == count == len(times)
    assert list(times) == sorted(times)
    assert 0 < answer.timing.first_token_s <= answer.timing.done_s
    assert answer.trace is None or {len(getattr(answer.trace, name)) for name in answer.trace.__struct_fields__} == {
        count
    }


def test_the_budget_ends_an_answer(live: Running, prompt: tuple[int, ...]) -> None:
    (answer,) = live.completions(free("budget", prompt, tokens=3))
    assert (answer.finish, len(answer.token_ids)) == ("length", 3)


def test_a_stop_string_cuts_the_text_where_it_was_said_first(live: Running) -> None:
    """BC-18: the prompt holds the stop string too; only what is newly said counts."""
    prompt = live.ids("0, 1, 2, 3, 4, 5, 6, 7,")
    (whole,) = live.completions(free("whole", prompt, tokens=16))
    (cut,) = live.completions(free("cut", prompt, tokens=16, stop=("never said", "0,")))
    assert "0," in whole.text
    assert (cut.text, cut.finish) == (whole.text.partition("0,")[0], "stop_string")


def test_a_constrained_answer_is_complete_and_ends_with_the_stop_token(live: Running, prompt: tuple[int, ...]) -> None:
    """BC-02: labels that are prefixes of others."""
    for answer in live.completions(*(steered(f"labels {i}", prompt[i:], LABELS, Native()) for i in range(3))):
        assert answer.text in LABELS.labels
        assert answer.finish == "stop"
        assert answer.token_ids[-1] in live.deployment.info.stop_ids


def test_free_and_constrained_requests_run_together(live: Running, prompt: tuple[int, ...]) -> None:
    """BC-36: every mask lands on its own row, while rows end and others join."""
    pairs = [Labels((a, b)) for a, b in ("AB", "CD", "EF")]
    (alone,) = live.completions(free("alone", prompt, tokens=12))
    rows = [
        free("r0", prompt, tokens=2),
        *(steered(f"r{i}", prompt, pair, Native()) for i, pair in enumerate(pairs, 1)),
    ]
    answers = live.completions(*rows, free("r4", prompt, tokens=12))
    assert [answer.text in pair.labels for answer, pair in zip(answers[1:4], pairs, strict=True)] == [True] * 3
    assert alone.token_ids[:2] == answers[0].token_ids
    assert alone.token_ids == answers[4].token_ids


def test_a_prompt_that_does_not_fit_is_that_requests_failure(live: Running, prompt: tuple[int, ...]) -> None:
    (answer,) = live.ask(free("long", prompt * 40, tokens=64))
    assert isinstance(answer, Failure)
    assert answer.failure == "too_long"


def test_ids_outside_the_vocabulary_are_that_requests_failure(live: Running, prompt: tuple[int, ...]) -> None:
    (answer,) = live.ask(free("outside", (*prompt, live.deployment.info.width)))
    assert isinstance(answer, Failure)
    assert answer.failure == "rejected"


def test_a_constraint_that_cannot_be_expressed_is_that_requests_failure(live: Running, prompt: tuple[int, ...]) -> None:
    bad, good = live.ask(steered("bad", prompt, Regex(r"(a|b)\1"), Native()), free("good", prompt))
    assert isinstance(bad, Failure)
    assert bad.failure == "unsupported"
    assert bad.timing is not None
    assert isinstance(good, Completion)


def test_a_caller_who_goes_away_holds_nothing_up(live: Running, prompt: tuple[int, ...]) -> None:
    async def leave() -> list[Completion | Failure]:
        going = [asyncio.ensure_future(live.deployment.generate(free(f"going {i}", prompt, 200))) for i in range(6)]
        await asyncio.sleep(0.2)
        for each in going:
            each.cancel()
        await asyncio.gather(*going, return_exceptions=True)
        return await asyncio.gather(*(live.deployment.generate(free(f"staying {i}", prompt)) for i in range(5)))

    assert all(isinstance(answer, Completion) for answer in live.runner.run(leave()))


@pytest.mark.parametrize("live", ["embedded"], indirect=True)  # servers on the CPU have no seeds; preflight says so
def test_equal_seeds_draw_alike_and_other_seeds_otherwise(live: Running, prompt: tuple[int, ...]) -> None:
    drawn = [free(f"draw {i}", prompt, tokens=12, temperature=1.0, seed=seed) for i, seed in enumerate([1, 1, 2, 3])]
    first, again, *others = (answer.token_ids for answer in live.completions(*drawn))
    assert first == again
    assert any(other != first for other in others)


def test_scores_are_the_log_probabilities_of_what_is_said(live: Running, prompt: tuple[int, ...]) -> None:
    (answer,) = live.completions(free("said", prompt))
    (scores,) = live.score(prompt, answer.token_ids)
    assert scores.token_ids == answer.token_ids
    assert answer.trace is not None
    assert scores.logprobs == pytest.approx(answer.trace.raw_logprob, abs=NOISE)


def test_scores_of_continuations_that_share_a_beginning_agree_on_it(live: Running, prompt: tuple[int, ...]) -> None:
    """BC-03: a score is the sum over all tokens, each given those before it, in the order that was asked."""
    ends = [live.ids(text) for text in (" Lyon", " Lyon and", " Lyon or", " Rome")]
    lyon, both, either, rome = live.score(prompt, *ends)
    assert [scores.token_ids for scores in (lyon, both, either, rome)] == ends
    assert both.logprobs[: len(ends[0])] == pytest.approx(lyon.logprobs, abs=SAME)
    assert either.logprobs[: len(ends[0])] == pytest.approx(lyon.logprobs, abs=SAME)
    assert all(math.isfinite(scores.total) and scores.total < 0 for scores in (lyon, both, either, rome))


def test_what_cannot_be_scored_is_an_error_and_never_zero(live: Running, prompt: tuple[int, ...]) -> None:
    """BC-27, BC-28: an empty continuation has no log-probability."""
    with pytest.raises(ValueError, match="no tokens"):
        live.score(prompt, prompt[:1], ())
    with pytest.raises(ValueError, match="no token of the model"):
        live.score(prompt, (live.deployment.info.width,))
