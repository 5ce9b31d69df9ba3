"""Processors inside a real server: right masks on the right rows, whatever the server does, and no harm to it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from embedded_models import Running, free, running, save_tiny, steered

from harness.constraint import Constraint, JsonSchema, Labels, Regex
from harness.deployments.sglang.config import SGLang, SGLangLaunch
from harness.deployments.sglang.launch import Server
from harness.errors import ConfigError
from harness.method import AsyncProcessor, Native, Processor
from harness.request import Completion, Failure, FailureKind

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]  # servers start slowly beside other work

QUESTIONS = ("Is the sky blue?", "Name a town.", "Two plus two is", "A poem:", "The list is: [", "She said")
FORMS: tuple[Constraint, ...] = (
    Labels(("no", "no evidence", "no evidence found", "yes")),
    Regex("[a-c]{2,4}-[0-9]{2}"),
    JsonSchema('{"type": "object", "properties": {"n": {"enum": ["a", "b"]}}, "required": ["n"]}', "compact"),
)
SPELLED = "live.bad_processors:forcing"


@pytest.fixture(scope="module")
def live(server: Server) -> Iterator[Running]:
    with running(SGLang(url=server.base_url)) as started:
        yield started


@pytest.fixture(scope="module")
def rough(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that computes prompts in pieces of 16 tokens and puts requests back again and again."""
    config = SGLangLaunch(
        python=".venv-sglang/bin/python",
        model=str(save_tiny(tmp_path_factory.mktemp("tiny"))),
        device="cpu",
        dtype="float32",
        grammar_backend="llguidance",
        arguments=("--chunked-prefill-size", "16"),
        environment={"SGLANG_TEST_RETRACT": "1"},
        ready_within_s=300.0,
    )
    with running(config) as started:
        yield started


@pytest.mark.parametrize(
    "method", [Processor(engine="llguidance"), AsyncProcessor(), AsyncProcessor(engine="xgrammar")]
)
def test_greedy_answers_of_processors_are_those_of_the_servers_own_grammar(
    live: Running, method: Processor | AsyncProcessor
) -> None:
    forms = FORMS[:2]  # the server's xgrammar has its own idea of white space in JSON
    asked = [(live.ids(text), form) for text in QUESTIONS for form in forms]
    own = live.completions(*(steered(f"n{i}", *pair, Native("xgrammar")) for i, pair in enumerate(asked)))
    ours = live.completions(*(steered(f"p{i}", *pair, method) for i, pair in enumerate(asked)))
    assert [answer.text for answer in ours] == [answer.text for answer in own]


def test_every_mask_lands_on_its_own_row(live: Running) -> None:
    """BC-36: processors with other constraints, the server's grammar and free requests in one batch."""
    prompt = live.ids(QUESTIONS[0])
    (alone,) = live.completions(free("alone", prompt, tokens=12))
    pairs = [Labels((a, b)) for a, b in ("AB", "CD", "EF", "GH")]
    methods = (Processor(engine="llguidance"), Native("xgrammar"), AsyncProcessor(), Processor())
    rows = [steered(f"r{i}", prompt, pair, method) for i, (pair, method) in enumerate(zip(pairs, methods, strict=True))]
    short, *held, whole = live.completions(free("short", prompt, tokens=2), *rows, free("whole", prompt, tokens=12))
    assert [answer.text in pair.labels for answer, pair in zip(held, pairs, strict=True)] == [True] * 4
    assert (short.token_ids, whole.token_ids) == (alone.token_ids[:2], alone.token_ids)


def test_state_belongs_to_requests_and_goes_with_them(live: Running) -> None:
    """BC-35: answers under load, with callers that leave, are those of one at a time, and no state stays behind."""
    method = Processor(engine="llguidance")
    asked = [(live.ids(text), form) for form in FORMS for text in QUESTIONS]
    alone = live.completions(*(steered(f"a{i}", *pair, method) for i, pair in enumerate(asked)), at_once=1)

    async def load() -> list[Completion | Failure]:
        leaving = [
            asyncio.ensure_future(live.deployment.generate(steered(f"l{i}", *pair, method, tokens=200)))
            for i, pair in enumerate([(live_ids, Regex("[a-z]{150,190}")) for live_ids in (asked[0][0],) * 3])
        ]
        staying = [live.deployment.generate(steered(f"s{i}", *pair, method)) for i, pair in enumerate(asked)]
        gathering = asyncio.gather(*staying)
        await asyncio.sleep(0.3)
        for each in leaving:
            each.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)
        return await gathering

    together = live.runner.run(load())
    assert [answer.text for answer in together if isinstance(answer, Completion)] == [answer.text for answer in alone]
    assert _open_states(live) == 1


def _open_states(live: Running) -> int:
    """How many sequences a processor holds while one more is answered."""
    courier = live.deployment.parts.courier  # type: ignore[attr-defined]
    request = steered("count", live.ids("A"), Labels(("yes",)), Processor(engine="llguidance"))
    backend = live.deployment.parts.backend  # type: ignore[attr-defined]
    answer = live.runner.run(
        backend.agenerate(request.prompt_ids, sampling=request.sampling, processor=courier.processor(request))
    )
    return int(answer.meta["harness"][-1][-1])


@pytest.mark.parametrize("kind", ["processor", "async"])
def test_a_forced_text_comes_out_exactly_in_pieces_and_after_being_put_back(rough: Running, kind: str) -> None:
    """BC-34, BC-35: prompts of several pieces, requests that are put back and computed anew."""
    engine = "llguidance"
    method = Processor(engine=engine) if kind == "processor" else AsyncProcessor(engine=engine)
    prompt = rough.ids("the quick brown fox jumps over the lazy dog " * 4)
    texts = [f"{'yes no ' * 6}{n}" for n in range(8)]
    rows = [steered(f"{kind}{n}", prompt[n:], Labels((text,)), method, tokens=120) for n, text in enumerate(texts)]
    assert [answer.text for answer in rough.completions(*rows)] == texts


def test_requests_were_really_put_back(rough: Running) -> None:
    """The test above proves nothing on a server that never does it."""
    log = Path(str(rough.deployment.info.details["log"])).read_text(encoding="utf-8")
    assert "etract" in log


def test_a_users_processor_runs_unchanged_with_the_modules_that_it_imports(live: Running) -> None:
    """BC-34: it forces a sequence by the history that it is shown, many times at once."""
    script = live.ids(" yes yes no no yes")
    force = Labels(tuple(map(str, script))) if len(set(script)) == len(script) else None
    script = live.ids(" one two three four five") if force is None else script
    force = force or Labels(tuple(map(str, script)))
    rows = [steered(f"f{n}", live.ids(text), force, Processor(call=SPELLED)) for n, text in enumerate(QUESTIONS)]
    stop = live.deployment.info.stop_ids[0]
    assert {answer.token_ids for answer in live.completions(*rows)} == {(*script, stop)}


@pytest.mark.parametrize(
    ("deed", "kind", "says"),
    [
        ("raises", "processor", "no such state"),
        ("raises later", "processor", "lost the thread"),
        ("nan", "processor", "NaN"),
        ("short", "processor", "shape"),
        ("forbids all", "processor", "no token possible"),
        ("exits", "processor", "exited with code 3"),
        ("hangs", "timeout", "longer than 2 s"),
    ],
)
def test_a_users_fault_is_one_failed_request_and_the_server_lives(
    live: Running, deed: str, kind: FailureKind, says: str
) -> None:
    prompt = live.ids(QUESTIONS[0])
    method = Processor(call="live.bad_processors:faulty", timeout_s=2.0)
    bad, beside = live.ask(steered(deed, prompt, Labels((deed,)), method), free("beside", prompt, tokens=20))
    assert isinstance(bad, Failure)
    assert bad.failure == kind
    assert says in bad.message
    assert isinstance(beside, Completion)
    (after,) = live.completions(steered("after", prompt, FORMS[0], Processor(engine="llguidance")))
    assert after.text in ("no", "no evidence", "no evidence found", "yes")


@pytest.mark.parametrize("method", [Processor, AsyncProcessor])
def test_a_mask_that_allows_nothing_fails_its_request_as_it_does_elsewhere(
    live: Running, method: type[Processor | AsyncProcessor]
) -> None:
    asked = steered("r", live.ids(QUESTIONS[0]), Labels(("fill forbids all",)), method(engine="user_engines:FAULTY"))
    (bad,) = live.ask(asked)
    assert isinstance(bad, Failure)
    assert (bad.failure, "the mask allows no token" in bad.message) == ("processor", True)


def test_a_module_that_is_not_there_is_an_error_of_the_set_up(live: Running) -> None:
    with pytest.raises(ConfigError, match="no module 'no_such_module'"):
        live.ask(steered("x", live.ids("A"), FORMS[0], Processor(call="no_such_module:factory")))


def test_a_constraint_that_the_engine_cannot_express_is_unsupported(live: Running) -> None:
    """BC-07."""
    bad = JsonSchema('{"type": "string", "pattern": "(?=a)b"}')
    (answer,) = live.ask(steered("u", live.ids("A"), bad, Processor(engine="llguidance")))
    assert isinstance(answer, Failure)
    assert answer.failure == "unsupported"
