"""Answers do not depend on who else runs, and what is said about their tokens is true."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from embedded_models import Running, free, running, save_tiny, steered
from transformers import AutoModelForCausalLM

from harness.constraint import Constraint, JsonSchema, Labels, Regex
from harness.deployments.embedded.config import Embedded
from harness.errors import ConfigError
from harness.mask import allowed, empty_mask
from harness.masks import engine
from harness.method import Native, Processor
from harness.request import Completion, Failure, Request
from harness.tokens import vocabulary

LLGUIDANCE = Native("llguidance")
TEXTS = ("no evidence found", "yes maybe", "the quick brown fox said hello to", "abab", "x", "1234 lazy dogs; yes")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("tiny"))


def small(folder: Path, **changes: object) -> Embedded:
    settings = {"dtype": "float32", "device": "cpu", "threads": 1, "max_batch": 8, "prefill_chunk": 32, "kept": 4}
    return Embedded(model=str(folder), **(settings | changes))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def live(folder: Path) -> Iterator[Running]:
    with running(small(folder)) as started:
        yield started


@pytest.fixture(scope="module")
def exact(folder: Path) -> Iterator[Running]:
    with running(small(folder, exact=True)) as started:
        yield started


def various(live: Running, prefix: str) -> list[Request]:
    """Forty requests, greedy and drawn, free and constrained, with prompts of all lengths, some of them equal."""
    constraints: list[Constraint | None] = [None, Labels(("no", "no evidence", "yes")), Regex("[a-c]{2,5}"), None]
    requests = []
    for i in range(40):
        prompt = live.ids(TEXTS[i % 6] * (1 + i % 5) if i >= 5 else TEXTS[2])
        constraint, temperature = constraints[i % 4], 0.0 if i % 3 else 0.8
        plain = free(f"{prefix} {i}", prompt, tokens=4 + i % 9, temperature=temperature, top_p=0.9, seed=i)
        method = plain.method if constraint is None else LLGUIDANCE
        requests.append(Request(plain.id, plain.example, plain.prompt_ids, constraint, method, plain.sampling))
    return requests


def test_answers_are_the_same_alone_and_under_load_with_others_leaving(live: Running) -> None:
    """BC-35: forty requests at concurrency 8, one of them aborted on its way, against each alone."""
    alone = live.completions(*various(live, "alone"), at_once=1)

    async def go_away() -> None:
        going = asyncio.ensure_future(live.deployment.generate(free("going", alone[2].token_ids, tokens=200)))
        await asyncio.sleep(0.05)
        going.cancel()

    requests = various(live, "loaded")

    async def loaded() -> list[Completion | Failure]:
        door = asyncio.Semaphore(8)

        async def one(request: Request) -> Completion | Failure:
            async with door:
                return await live.deployment.generate(request)

        answers, _ = await asyncio.gather(asyncio.gather(*map(one, requests)), go_away())
        return answers

    together = live.runner.run(loaded())
    assert [answer.token_ids for answer in together if isinstance(answer, Completion)] == [a.token_ids for a in alone]


def test_exact_results_are_equal_bit_for_bit_whatever_the_batch(exact: Running) -> None:
    alone = exact.completions(*various(exact, "alone"), at_once=1)
    together = exact.completions(*various(exact, "together"))
    assert [(a.token_ids, a.trace) for a in together] == [(a.token_ids, a.trace) for a in alone]
    assert {answer.cached_tokens for answer in together} == {0}


def test_masks_land_on_their_own_rows_when_methods_are_mixed(live: Running) -> None:
    """BC-36: native and processor rows of different constraints beside free ones, while rows leave and others join."""
    prompt = live.ids("yes no")
    alone = live.completions(free("alone", prompt, tokens=12))[0].token_ids
    pairs = [Labels(pair) for pair in (("A", "B"), ("C", "D"), ("E", "F"), ("G", "H"))]
    methods = [LLGUIDANCE, Processor("llguidance"), LLGUIDANCE, Processor("llguidance")]
    rows = [steered(f"r{i}", prompt, *each) for i, each in enumerate(zip(pairs, methods, strict=True))]
    short, *labelled, whole = live.completions(free("short", prompt, tokens=2), *rows, free("whole", prompt, tokens=12))
    assert [answer.text in pair.labels for answer, pair in zip(labelled, pairs, strict=True)] == [True] * 4
    assert (short.token_ids, whole.token_ids) == (alone[:2], alone)


def test_the_trace_tells_what_the_bare_model_and_the_mask_say(live: Running, folder: Path) -> None:
    constraint = JsonSchema('{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}', "compact")
    prompt = live.ids("maybe yes")
    (answer,) = live.completions(steered("json", prompt, constraint, LLGUIDANCE, tokens=40))
    network = AutoModelForCausalLM.from_pretrained(folder)
    with torch.inference_mode():
        logits = network(torch.tensor([[*prompt, *answer.token_ids]])).logits[0, len(prompt) - 1 : -1]
    info = live.deployment.info
    matcher = engine("llguidance").compiler(vocabulary(folder, info.width, info.stop_ids)).compile(constraint).matcher()
    trace = answer.trace
    assert trace is not None
    for step, (token, raw) in enumerate(zip(answer.token_ids, logits.double().log_softmax(-1), strict=True)):
        mask = empty_mask(info.width)
        matcher.fill(mask)
        kept = allowed(mask, info.width)
        mass = raw[kept].exp().sum().item()
        assert trace.allowed[step] == len(kept)
        assert trace.mass[step] == pytest.approx(mass, rel=1e-3)
        assert trace.raw_logprob[step] == pytest.approx(raw[token].item(), abs=1e-3)
        assert trace.masked_logprob[step] == pytest.approx(raw[token].item() - np.log(mass), abs=1e-3)
        assert (trace.wanted[step], trace.wanted_logprob[step]) == (
            int(raw.argmax()),
            pytest.approx(raw.max().item(), abs=1e-3),
        )
        assert token == kept[raw[kept].argmax()]
        matcher.advance(token)


def test_a_free_answer_is_the_bare_models_greedy_one(live: Running, folder: Path) -> None:
    prompt = live.ids("the lazy dogs")
    (answer,) = live.completions(free("greedy", prompt, tokens=10))
    network = AutoModelForCausalLM.from_pretrained(folder)
    expected = network.generate(torch.tensor([prompt]), max_new_tokens=10, do_sample=False)[0, len(prompt) :]
    assert answer.token_ids == tuple(expected.tolist())
    assert answer.trace is not None
    assert answer.trace.masked_logprob == answer.trace.raw_logprob
    assert set(answer.trace.mass) == {1.0}
    assert set(answer.trace.allowed) == {None}


def test_the_next_section_reuses_what_the_last_one_computed(live: Running) -> None:
    prompt = live.ids("no evidence, no evidence found, maybe")
    (first,) = live.completions(free("section 1", prompt, tokens=6))
    longer = (*prompt, *first.token_ids, *live.ids(" yes"))
    (second,) = live.completions(free("section 2", longer, tokens=6))
    assert second.cached_tokens == len(prompt) + len(first.token_ids) - 1
    (afresh,) = live.completions(free("another arm's turn", longer, tokens=2, cache="another"))
    assert afresh.cached_tokens == 0


def test_prompts_that_arrive_together_compute_their_common_beginning_once(live: Running) -> None:
    beginning = "a preamble that nobody has asked before: " * 3
    answers = live.completions(*(free(f"common {i}", live.ids(f"{beginning}{i}"), tokens=2) for i in range(6)))
    cached = sorted(answer.cached_tokens or 0 for answer in answers)
    assert cached[0] == 0
    assert {answer.cost.steps for answer in answers} == {2}
    assert min(cached[1:]) > len(live.ids(beginning)) - 32  # so few are not worth waiting for


def test_the_first_use_of_a_constraint_pays_for_compiling_it_and_free_rows_pay_for_no_mask(live: Running) -> None:
    """BC-39: compile time is a column of its own."""
    prompt = live.ids("ab")
    rows = [steered(f"first {i}", prompt, Labels(("first", "use")), LLGUIDANCE) for i in range(3)]
    first, *later = (answer.cost for answer in live.completions(*rows))
    (plain,) = live.completions(free("plain", prompt))
    assert first.compile_s is not None
    assert first.compile_s > 0
    assert [cost.compile_s for cost in later] == [0.0, 0.0]
    assert all(cost.mask_s and cost.wait_s and cost.apply_s and cost.forward_s for cost in (first, *later))
    assert (plain.cost.mask_s, plain.cost.wait_s, plain.cost.apply_s, plain.cost.compile_s) == (None,) * 4


@pytest.mark.parametrize(
    ("sampling", "problem"),
    [
        ({"tokens": 0}, "max_tokens"),
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_k": -1}, "top_k"),
    ],
)
def test_sampling_that_means_nothing_is_rejected(live: Running, sampling: dict[str, float], problem: str) -> None:
    (answer,) = live.ask(free("odd", (1, 2), **sampling))  # type: ignore[arg-type]
    assert isinstance(answer, Failure)
    assert (answer.failure, problem in answer.message) == ("rejected", True)


def test_a_request_without_a_prompt_and_one_that_runs_twice_are_rejected(live: Running) -> None:
    empty, once, twice = live.ask(free("empty", ()), free("same", (1,)), free("same", (2,)))
    assert isinstance(once, Completion)
    assert [answer.failure for answer in (empty, twice) if isinstance(answer, Failure)] == ["rejected", "rejected"]


def test_a_constrained_request_with_a_stop_string_is_rejected(live: Running) -> None:
    """BC-18: few-shot separators are no stop strings for constrained methods."""
    plain = free("stops", (1, 2), stop=("###",))
    (answer,) = live.ask(Request("stops", "stops", (1, 2), Labels(("a",)), LLGUIDANCE, plain.sampling))
    assert isinstance(answer, Failure)
    assert answer.failure == "rejected"


def test_a_broken_engine_name_is_an_error_of_the_set_up(live: Running) -> None:
    with pytest.raises(ConfigError, match="no_such_engine"):
        live.ask(steered("engine", (1, 2), Labels(("a",)), Native("no_such_engine")))
