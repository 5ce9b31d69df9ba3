"""The order of a run."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from harness.blocks import turns
from harness.method import AsyncProcessor, Method, Native, Processor, Unconstrained, arm_name

METHODS: tuple[Method, ...] = (Unconstrained(), Native(), Processor(), AsyncProcessor())
EXAMPLES = [f"e{number}" for number in range(37)]


@given(st.integers(1, 50), st.integers(0, 5))
def test_every_arm_gets_every_example_once(size: int, seed: int) -> None:
    asked = Counter((arm_name(t.method), e) for t in turns(EXAMPLES, METHODS, size, seed) for e in t.examples)
    assert asked == Counter((arm_name(method), example) for method in METHODS for example in EXAMPLES)


def test_the_arms_of_a_block_share_its_examples_and_vary_in_order() -> None:
    made = turns(EXAMPLES, METHODS, 5, seed=1)
    orders = set()
    for block in {turn.block for turn in made}:
        mine = [turn for turn in made if turn.block == block]
        assert len({turn.examples for turn in mine}) == 1
        orders.add(tuple(arm_name(turn.method) for turn in mine))
    assert len(orders) > 1


@given(st.sets(st.tuples(st.sampled_from([arm_name(m) for m in METHODS]), st.sampled_from(EXAMPLES))))
def test_a_resumed_run_asks_exactly_what_is_missing(done: set[tuple[str, str]]) -> None:
    """BC-23."""
    asked = [(arm_name(t.method), e) for t in turns(EXAMPLES, METHODS, 5, 1, done) for e in t.examples]
    everything = {(arm_name(method), example) for method in METHODS for example in EXAMPLES}
    assert len(asked) == len(set(asked))
    assert set(asked) == everything - done


def test_what_is_done_does_not_change_the_order_of_the_rest() -> None:
    whole = [(t.block, arm_name(t.method)) for t in turns(EXAMPLES, METHODS, 5, 1)]
    rest = [(t.block, arm_name(t.method)) for t in turns(EXAMPLES, METHODS, 5, 1, {("none", "e0")})]
    assert rest == whole
