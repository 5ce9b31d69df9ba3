"""Users' processors keep state by request, are told the whole history, and are let go with their request."""

import pytest
from decoding_loop import VOCABULARY, Loop, labelled

from harness.method import AsyncProcessor, Processor
from harness.processors import masker_for
from harness.processors.masker import Rewritten

METHODS = [Processor(call="user_processors:faulty"), AsyncProcessor(call="user_processors:async_faulty")]


@pytest.fixture(scope="module", params=METHODS, ids=["processor", "async"])
def masker(request):
    masker = masker_for(request.param, VOCABULARY)
    yield masker
    masker.stop()


def test_a_processor_that_goes_by_its_history_forces_its_sequence_at_concurrency_20(masker):
    """BC-34."""
    texts = [("abcab" * 3)[: n + 1] for n in range(20)]
    loop = Loop(masker)
    said = loop.run(*(labelled(f"r{n}", "forces", text) for n, text in enumerate(texts)))
    assert list(said.values()) == texts


def test_a_processor_is_right_when_the_loop_tells_late_that_a_step_begins(masker):
    """BC-34."""
    loop = Loop(masker)
    loop.open(*(labelled(f"r{n}", "forces", "abcabcabc") for n in range(3)))
    step = 0
    while loop.running:
        loop.step(ahead=step % 3 == 0)
        step += 1
    assert [loop.text(f"r{n}") for n in range(3)] == ["abcabcabc"] * 3


def test_nothing_of_a_request_lives_on_in_the_worker_after_its_end(masker):
    """BC-35: the processors here leave only the token that is the number of live states."""
    loop = Loop(masker)
    loop.run(*(labelled(f"r{n}", "counts") for n in range(10)))
    loop.open(labelled("cancelled", "counts"))
    loop.step()
    loop.cancel("cancelled")
    loop.run(labelled("alone", "counts"))
    assert set(loop.said["r0"]) == {10}
    assert set(loop.said["alone"]) == {1}


def test_new_logits_come_with_the_time_that_making_them_took(masker):
    loop = Loop(masker)
    loop.open(labelled("timed", "counts"))
    answer = loop.step()["timed"]
    loop.cancel("timed")
    assert isinstance(answer, Rewritten)
    assert answer.mask_s > 0.0


def test_a_request_can_be_opened_again_under_its_old_name_and_closed_twice(masker):
    loop = Loop(masker)
    assert loop.run(labelled("twice", "forces", "abc")) == {"twice": "abc"}
    masker.close("twice")
    assert loop.run(labelled("twice", "forces", "ca")) == {"twice": "ca"}


def test_two_requests_of_one_name_are_a_mistake_of_the_caller(masker):
    masker.open(labelled("same", "forces", "a"))
    with pytest.raises(ValueError, match="is open already"):
        masker.open(labelled("same", "forces", "a"))
    masker.close("same")
