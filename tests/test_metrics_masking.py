"""What the mask did, from traces."""

import math

import msgspec
import pytest
from metrics_records import arm, slim, slims, whole

from harness.metrics.masking import Step, Wishing, masking, was_forbidden
from harness.metrics.traces import Traces
from harness.metrics.whole import Whole, read_sample
from harness.record import Record
from harness.request import Trace


def read(record: Record) -> Whole:
    """The record as metrics read it back from its line."""
    (found,) = read_sample([(str, msgspec.json.encode(record))], 1.0)
    return found


def step(said: int, wanted: int, raw: float, probability: float, mass: float) -> Step:
    return Step(said, math.log(raw), mass, 5, wanted, math.log(probability))


def test_mass_that_could_not_hold_the_likeliest_token_shows_that_it_was_forbidden() -> None:
    assert was_forbidden(step(1, 2, 0.05, 0.6, mass=0.3), greedy=False) is True


def test_mass_that_must_hold_the_likeliest_token_shows_that_it_was_allowed() -> None:
    assert was_forbidden(step(1, 2, 0.1, 0.6, mass=0.9), greedy=False) is False


def test_a_sampled_token_below_an_unsure_wish_leaves_it_undecided_and_a_greedy_one_does_not() -> None:
    unsure = step(1, 2, 0.1, 0.3, mass=0.5)
    assert was_forbidden(unsure, greedy=False) is None
    assert was_forbidden(unsure, greedy=True) is True


def test_what_was_said_was_allowed_and_a_tie_is_no_wish() -> None:
    assert was_forbidden(step(2, 2, 0.3, 0.3, mass=0.4), greedy=True) is False
    assert was_forbidden(step(1, 2, 0.3, 0.3, mass=0.5), greedy=True) is False


def test_the_mask_of_the_documented_example() -> None:
    """BC-31: logits yes 1, no 0, the 3; allowed yes and no."""
    total = math.exp(1) + 1 + math.exp(3)
    raw, mass = math.exp(1) / total, (math.exp(1) + 1) / total
    assert (raw, mass, raw / mass) == pytest.approx((0.1142, 0.1562, 0.7311), abs=1e-4)
    trace = Trace((math.log(raw),), (math.log(raw / mass),), (mass,), (2,), (3,), (math.log(math.exp(3) / total),))
    wishing = Wishing(greedy=False)
    wishing.add(read(whole(slim(), trace, [1])))
    found = wishing.wanted()
    assert found is not None
    assert (found.tokens, found.forbidden, found.undecided) == (1, 1, 0)
    (wish,) = found.wishes
    assert (wish.token, wish.instead, wish.count, wish.examples) == (3, 1, 1, ("e0",))
    assert wish.probability == pytest.approx(0.8438, abs=1e-4)


def test_wishes_are_counted_over_the_run_the_most_frequent_first() -> None:
    wishing = Wishing(greedy=True)
    for number, wanted in enumerate([7, 8, 7, 7, 5]):
        trace = Trace((-3.0, -0.1), (-0.1, -0.1), (0.2, 0.9), (4, 1), (wanted, 6), (-0.5, -0.1))
        wishing.add(read(whole(slim(example=f"e{number}"), trace, [5, 6])))
    found = wishing.wanted()
    assert found is not None
    assert [(wish.token, wish.count) for wish in found.wishes] == [(7, 3), (8, 1)]
    assert found.wishes[0].examples == ("e0", "e2", "e3")
    assert (found.answers, found.tokens, found.forbidden, found.forced) == (5, 10, 4, 5)
    assert sum(found.kept) == 10
    share = wishing.share()
    assert (share.value, share.n) == (pytest.approx(0.4), 5)
    assert 0 < (share.low or 0) < 0.4 < (share.high or 0) < 1


def test_no_wish_in_a_few_answers_is_no_proof_that_there_is_none() -> None:
    wishing = Wishing(greedy=True)
    for _ in range(10):
        wishing.add(read(whole(slim(), Trace((-0.1,), (-0.1,), (1.0,), (3,), (5,), (-0.1,)), [5])))
    share = wishing.share()
    assert (share.value, share.low) == (0.0, 0.0)
    assert (share.high or 0) > 0.1


def test_free_parts_and_missing_traces_tell_nothing_of_a_mask() -> None:
    wishing = Wishing(greedy=True)
    wishing.add(read(whole(slim(), None, [1, 2])))
    assert wishing.wanted() is None
    assert wishing.share().value is None


def test_times_between_tokens_are_those_of_one_part() -> None:
    traces = Traces(greedy=True)
    traces.add(read(whole(slim(), None, [1, 2, 3])))
    times, blocks = traces.between_tokens()
    assert times == pytest.approx([0.1, 0.1])
    assert blocks.tolist() == [0, 0]


def test_a_sample_takes_the_same_examples_in_every_arm() -> None:
    lines = [
        (str, msgspec.json.encode(whole(slim(arm=name, example=f"e{i}"), None))) for name in "ab" for i in range(400)
    ]
    chosen: dict[str, set[str]] = {"a": set(), "b": set()}
    for record in read_sample(lines, 0.25):
        chosen[record.arm].add(record.example)
    assert chosen["a"] == chosen["b"]
    assert 60 < len(chosen["a"]) < 140


def test_the_gap_between_confidences_is_of_answers_that_had_a_mask() -> None:
    masked = masking(arm(slims(3, mass=[0.5, 0.5, None], path_confidence=0.8, raw_confidence=[0.4, 0.2, 0.8])))
    assert (masked["confidence_gap"].value, masked["confidence_gap"].n) == (pytest.approx(0.5), 2)
    assert masked["mass"].value == pytest.approx(0.5)
    free = masking(arm(slims(3)))
    assert {name: (found.value, found.n) for name, found in free.items()} == dict.fromkeys(free, (None, 0))
