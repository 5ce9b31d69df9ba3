"""Seats and what is reused: every number in a slot belongs to the tokens that the slot says it holds."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.deployments.embedded.cache import KeyValues, Shape
from harness.deployments.embedded.slots import Slots

TOTAL, CONTEXT = 5, 12


def made(reuse: bool = True) -> Slots:
    store = KeyValues(Shape(1, 1, 1, 1), TOTAL, torch.float32, torch.device("cpu"))
    store.reserve(CONTEXT)
    return Slots(store, TOTAL, CONTEXT, reuse)


def compute(slots: Slots, slot: int, tokens: list[int]) -> None:
    """Stand in for the model: the key of a token is the token."""
    start = slots.filled(slot)
    slots.store.keys[0, slot, 0, start : start + len(tokens), 0] = torch.tensor(tokens, dtype=torch.float32)
    slots.extend(slot, tokens)


def keys(slots: Slots, slot: int) -> list[int]:
    return [int(key) for key in slots.store.keys[0, slot, 0, : slots.filled(slot), 0]]


def run(slots: Slots, prompt: list[int], owner: str = "arm") -> tuple[int, int]:
    """Seat a sequence and compute its prompt."""
    slot, cached = slots.seat(prompt, owner)
    compute(slots, slot, prompt[cached:])
    return slot, cached


def test_a_continuation_takes_over_what_its_beginning_left() -> None:
    slots = made()
    slot, _ = run(slots, [1, 2, 3])
    compute(slots, slot, [4, 5])
    slots.leave(slot)
    assert run(slots, [1, 2, 3, 4, 5, 6]) == (slot, 5)


def test_a_prefix_is_copied_from_a_sequence_that_still_runs() -> None:
    slots = made()
    run(slots, [1, 2, 3, 4])
    slot, cached = run(slots, [1, 2, 9, 9])
    assert cached == 2
    assert keys(slots, slot) == [1, 2, 9, 9]


def test_one_token_of_a_known_prompt_is_left_to_compute() -> None:
    slots = made()
    run(slots, [1, 2, 3])
    assert run(slots, [1, 2, 3])[1] == 2
    assert run(slots, [7])[1] == 0


def test_another_arm_finds_nothing() -> None:
    slots = made()
    slots.leave(run(slots, [1, 2, 3], "native/llguidance")[0])
    assert run(slots, [1, 2, 3, 4], "none")[1] == 0
    assert slots.now([1, 2, 3, 4], None)[0] == 3


def test_without_reuse_nothing_is_kept() -> None:
    slots = made(reuse=False)
    slots.leave(run(slots, [1, 2, 3])[0])
    assert run(slots, [1, 2, 3, 4])[1] == 0


def test_what_was_unused_longest_is_given_up_first() -> None:
    slots = made()
    for first in range(TOTAL):
        slots.leave(run(slots, [first, 50, 51])[0])
    run(slots, [0, 50, 52])  # uses the oldest again
    run(slots, [90, 91])
    assert [slots.now([first, 50, 51, 99], "arm")[0] for first in (0, 1)] == [2, 0]


def test_a_prompt_being_computed_can_be_waited_for() -> None:
    slots = made()
    slot, _ = slots.seat([1, 2, 3, 4], "arm")
    assert slots.now([1, 2, 3, 9], "arm")[0] == 0
    assert slots.soon([1, 2, 3, 9], "arm") == 3
    compute(slots, slot, [1, 2, 3, 4])
    assert slots.now([1, 2, 3, 9], "arm")[0] == 3


prompts = st.lists(st.integers(0, 2), min_size=1, max_size=6)
actions = st.lists(st.one_of(prompts, st.integers(0, 2)), max_size=30)


@settings(max_examples=200, deadline=None)
@given(actions=actions)
def test_sequences_keep_their_keys_and_sit_side_by_side_whoever_comes_and_goes(actions: list[list[int] | int]) -> None:
    """BC-35: nothing of one sequence is lost or seen in another when others join and leave."""
    slots = made()
    running: list[tuple[int, list[int]]] = []
    for action in actions:
        if isinstance(action, list) and len(running) < 3:
            running.append((run(slots, action)[0], list(action)))
        elif isinstance(action, int) and action < len(running):
            slots.leave(running.pop(action)[0])
        moved = slots.close_ranks()
        running = [(moved.get(slot, slot), tokens) for slot, tokens in running]
        for slot, tokens in running:
            if len(tokens) < CONTEXT:
                compute(slots, slot, [7])
                tokens.append(7)
        assert sorted(slot for slot, _ in running) == list(range(len(running)))
        assert [keys(slots, slot) for slot, _ in running] == [tokens for _, tokens in running]
