"""What users' code does wrong is one failed request with a clear message; its neighbours and the run go on."""

import pytest
from decoding_loop import VOCABULARY, Loop, labelled

from harness.method import AsyncProcessor, Processor
from harness.processors import masker_for

LIMIT_S = 2.0

RAISED = {
    "raises": "ValueError: cannot follow 0 tokens; user_processors.py",
    "raises later": "KeyError: 'lost'",
    "exits": "the code called exit: SystemExit: enough",
    "gives none": "gave NoneType, not a tensor",
    "gives a list": "gave list, not a tensor",
    "short": "gave logits of shape (123,); wanted (124,)",
    "batched": "gave logits of shape (1, 124)",
    "double": "gave logits of type torch.float64",
    "nan": "gave logits with NaN",
    "infinite": "gave logits with +inf",
    "all forbidden": "left no token possible",
    "factory raises": "RuntimeError: no such grammar",
    "factory exits": "the code called exit: SystemExit: 3",
    "factory gives none": "the factory gave NoneType, not a processor",
}
ASYNC = {
    "raises": "ValueError: no mask today",
    "raises first": "ValueError: not even a yield",
    "exits": "the code called exit",
    "never yields": "ended without a yield",
    "yields once": "ended without yielding new logits",
    "yields thrice": "yields again after its new logits",
    "yields early": "the first yield of an async processor is bare",
    "gives a list": "gave list, not a tensor",
    "cancels itself": "cancelled",
    "is no generator": "is an async function without yield",
    "is not async": "gave Tensor; wanted an async generator",
}


@pytest.fixture(scope="module")
def masker():
    masker = masker_for(Processor(call="user_processors:faulty", timeout_s=LIMIT_S), VOCABULARY)
    yield masker
    masker.stop()


@pytest.fixture(scope="module")
def async_masker():
    masker = masker_for(AsyncProcessor(call="user_processors:async_faulty", timeout_s=LIMIT_S), VOCABULARY)
    yield masker
    masker.stop()


def beside_neighbours(masker, deed: str):
    """The failure of a request that does `deed`; its neighbours must say what they should."""
    loop = Loop(masker)
    said = loop.run(labelled("before", "yes"), labelled("culprit", deed), labelled("after", "no evidence"))
    assert said.pop("before") == "yes"
    assert said.pop("after") == "no evidence"
    assert set(loop.failures) == {"culprit"}
    return loop.failures["culprit"]


@pytest.mark.parametrize("deed", RAISED)
def test_a_processor_that_breaks_its_protocol_fails_alone(masker, deed):
    failure = beside_neighbours(masker, deed)
    assert failure.failure == "processor"
    assert RAISED[deed] in failure.message


@pytest.mark.parametrize("deed", ASYNC)
def test_an_async_processor_that_breaks_its_protocol_fails_alone(async_masker, deed):
    failure = beside_neighbours(async_masker, deed)
    assert failure.failure == "processor"
    assert ASYNC[deed] in failure.message


@pytest.mark.parametrize(
    ("deed", "kind", "message"),
    [
        ("crashes", "processor", "the worker was ended by SIGSEGV"),
        ("hangs", "timeout", "took longer than 2 s"),
    ],
)
def test_a_processor_that_takes_its_worker_down_fails_alone(masker, deed, kind, message):
    failure = beside_neighbours(masker, deed)
    assert failure.failure == kind
    assert message in failure.message


@pytest.mark.parametrize(
    ("deed", "kind", "message"),
    [
        ("exits hard", "processor", "the worker exited with code 7"),
        ("blocks", "timeout", "took longer than 2 s"),
        ("hangs", "timeout", "the processor took longer than 2 s"),
    ],
)
def test_an_async_processor_that_takes_its_worker_down_fails_alone(async_masker, deed, kind, message):
    failure = beside_neighbours(async_masker, deed)
    assert failure.failure == kind
    assert message in failure.message


def test_what_a_processor_prints_disturbs_nothing(masker):
    loop = Loop(masker)
    loop.run(labelled("r", "prints"))
    assert not loop.failures
    assert set(loop.said["r"]) == {5}


def test_a_processor_may_change_its_logits_in_place(masker):
    loop = Loop(masker)
    loop.run(labelled("r", "in place"))
    assert set(loop.said["r"]) == {9}


def test_a_token_that_the_mask_forbade_is_a_failure():
    masker = masker_for(Processor("user_engines:FAULTY"), VOCABULARY)
    loop = Loop(masker)
    loop.open(labelled("r", "yes"))
    masker.token("r", 0)
    loop.step()
    assert "does not continue the text" in loop.failures["r"].message
    masker.stop()


def test_a_mask_that_allows_nothing_is_a_failure():
    masker = masker_for(Processor("user_engines:FAULTY"), VOCABULARY)
    loop = Loop(masker)
    loop.run(labelled("r", "fill forbids all"))
    assert loop.failures["r"].message == "the mask allows no token after 0 tokens"
    assert loop.failures["r"].failure == "processor"
    masker.stop()
