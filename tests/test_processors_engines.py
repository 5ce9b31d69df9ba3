"""Shipped engines under `processor` and `async`: the masks are the engine's, whoever makes them, wherever, whenever."""

import pytest
from decoding_loop import LONGEST, STOP, VOCABULARY, WIDTH, Loop, labelled, logits_of, masked

from harness.constraint import Constraint, JsonSchema, Labels, Regex
from harness.mask import MaskEngine, empty_mask
from harness.masks import engine
from harness.method import AsyncProcessor, Processor
from harness.processors import masker_for
from harness.request import Request, Sampling

METHODS = [
    Processor("lm_format_enforcer"),
    AsyncProcessor("lm_format_enforcer"),
    AsyncProcessor("llguidance", workers=3),
    Processor(call="user_factories:masking"),
    AsyncProcessor(call="user_factories:async_masking"),
]
CONSTRAINTS: tuple[Constraint, ...] = (
    Labels(("no", "no evidence", "no evidence found")),
    Regex("[a-c]{2,5}(yes|no)?"),
    Labels(("found", "evid", "abc")),
    JsonSchema('{"type":"object","properties":{"ab":{"enum":["x","yy"]}},"required":["ab"]}', "compact"),
)


@pytest.fixture(scope="module", params=METHODS, ids=str)
def method(request: pytest.FixtureRequest) -> Processor | AsyncProcessor:
    return request.param


@pytest.fixture(scope="module")
def masker(method):
    masker = masker_for(method, VOCABULARY)
    yield masker
    masker.stop()


def alone(used: MaskEngine, name: str, constraint: Constraint) -> list[int]:
    """What the request says when the engine runs right here."""
    matcher = used.compiler(VOCABULARY).compile(constraint).matcher()
    said: list[int] = []
    mask = empty_mask(WIDTH)
    while len(said) < LONGEST and STOP not in said:
        matcher.fill(mask)
        said.append(int(masked(logits_of(name, said), mask).argmax()))
        matcher.advance(said[-1])
    return said


def requests(count: int, method) -> list[Request]:
    def one(number: int) -> Request:
        constraint = CONSTRAINTS[number % len(CONSTRAINTS)]
        return Request(f"r{number}", f"e{number}", (1,), constraint, method, Sampling(LONGEST))

    return [one(number) for number in range(count)]


def test_every_method_says_what_the_engine_says_in_the_loop_itself(masker, method):
    used = engine(method.engine if method.call is None else "llguidance")
    loop = Loop(masker)
    asked = requests(12, method)
    loop.run(*asked)
    assert not loop.failures
    assert loop.said == {each.id: alone(used, each.id, each.constraint) for each in asked}


def test_a_forced_sequence_comes_out_exactly_at_concurrency_20(masker, method):
    """BC-34."""
    loop = Loop(masker)
    asked = [labelled(f"forced {n}", ("abcab" * 3)[: n + 1], method=method) for n in range(20)]
    assert loop.run(*asked) == {f"forced {n}": ("abcab" * 3)[: n + 1] for n in range(20)}


def test_masks_are_right_when_the_loop_tells_late_that_a_step_begins(masker, method):
    """BC-34: the mask may be asked ahead or not, in any step."""
    loop = Loop(masker)
    loop.open(*(labelled(f"late {n}", "abcabcabc", method=method) for n in range(3)))
    for number in range(LONGEST):
        if loop.running:
            loop.step(ahead=number % 3 == 0)
    assert [VOCABULARY.text(said) for said in loop.said.values()] == ["abcabcabc"] * 3


def test_answers_do_not_depend_on_who_shares_the_batch(masker, method):
    """BC-35, BC-36: 40 requests that join and leave at any step, one cancelled, say what each says alone."""
    asked = requests(40, method)
    crowd, waiting = Loop(masker), list(asked)
    while waiting or crowd.running:
        if waiting and len(crowd.running) < 8:
            crowd.open(waiting.pop(0))
        crowd.step()
        if "r4" in crowd.running and len(crowd.said["r4"]) == 2:
            crowd.cancel("r4")
    solo = Loop(masker)
    for each in asked:
        solo.run(each)
    assert not crowd.failures | solo.failures
    assert {k: v for k, v in crowd.said.items() if k != "r4"} == {k: v for k, v in solo.said.items() if k != "r4"}
    assert crowd.said["r4"] == solo.said["r4"][:2]


def test_a_compiled_constraint_is_not_compiled_again():
    masker = masker_for(AsyncProcessor("user_engines:FAULTY"), VOCABULARY)
    loop = Loop(masker)
    loop.open(labelled("first", "yes", "no"), labelled("second", "yes", "no"))
    assert masker.compile_s("first") > 0.0
    assert masker.compile_s("second") == 0.0
    masker.stop()


def test_the_first_async_mask_is_made_without_being_asked_for():
    masker = masker_for(AsyncProcessor("user_engines:FAULTY"), VOCABULARY)
    loop = Loop(masker)
    loop.open(labelled("r", "yes", "no"))
    answer = loop.step(ahead=False)["r"]
    assert answer.mask_s > 0.0
    masker.stop()


def test_a_constraint_that_the_engine_cannot_express_is_unsupported_with_the_reason():
    masker = masker_for(Processor("user_engines:FAULTY"), VOCABULARY)
    loop = Loop(masker)
    loop.run(labelled("r", "compile refuses"))
    assert loop.failures["r"].failure == "unsupported"
    assert loop.failures["r"].message == "no such thing here"
    masker.stop()


def test_workers_share_requests_and_say_the_same():
    masker = masker_for(AsyncProcessor("user_engines:FAULTY", workers=2), VOCABULARY)
    loop = Loop(masker)
    texts = [("abcab" * 3)[: n + 1] for n in range(15)]
    assert list(loop.run(*(labelled(f"r{n}", text) for n, text in enumerate(texts))).values()) == texts
    masker.stop()
