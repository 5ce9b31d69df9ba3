"""Choosing tokens: shares are the probabilities, limits limit, masks hold, and a draw depends on its own row alone."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.deployments.embedded.sampling import choose, draw, is_greedy, stream
from harness.method import Unconstrained
from harness.request import Request, Sampling

LOGITS = torch.tensor([2.0, 1.0, 0.5, 0.0, -torch.inf, -1.0])
GRID = [(i + 0.5) / 2000 for i in range(2000)]


def shares(sampling: Sampling) -> torch.Tensor:
    """How often each token is drawn over evenly spaced uniform numbers."""
    tokens = torch.stack([draw(LOGITS, sampling, uniform) for uniform in GRID])
    return torch.bincount(tokens, minlength=len(LOGITS)) / len(GRID)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_tokens_are_drawn_as_often_as_they_are_probable(temperature: float) -> None:
    expected = (LOGITS / temperature).softmax(-1)
    torch.testing.assert_close(shares(Sampling(1, temperature)), expected, atol=1e-3, rtol=0)


def test_top_k_leaves_the_likeliest() -> None:
    expected = LOGITS.masked_fill(torch.arange(6) > 1, -torch.inf).softmax(-1)
    torch.testing.assert_close(shares(Sampling(1, 1.0, top_k=2)), expected, atol=1e-3, rtol=0)


def test_top_p_leaves_the_fewest_tokens_that_reach_it() -> None:
    kept = LOGITS.softmax(-1).cumsum(-1) < 0.7
    kept[1:] = kept.clone()[:-1]
    kept[0] = True
    expected = LOGITS.masked_fill(~kept, -torch.inf).softmax(-1)
    torch.testing.assert_close(shares(Sampling(1, 1.0, top_p=0.7)), expected, atol=1e-3, rtol=0)


def test_top_p_of_a_flat_vocabulary_looks_past_the_first_candidates() -> None:
    flat = torch.zeros(5000)
    drawn = {int(draw(flat, Sampling(1, 1.0, top_p=0.9), uniform)) for uniform in GRID}
    assert max(drawn) > 4900


logits = st.lists(st.one_of(st.floats(-30, 30), st.just(-float("inf"))), min_size=1, max_size=40).filter(
    lambda values: max(values) > -float("inf")
)


@settings(deadline=None)
@given(logits, st.floats(0.01, 5), st.integers(0, 5), st.floats(0.01, 1), st.floats(0, 1, exclude_max=True))
def test_what_a_mask_forbids_is_never_drawn(
    values: list[float], temperature: float, top_k: int, top_p: float, uniform: float
) -> None:
    row = torch.tensor(values)
    token = int(draw(row, Sampling(1, temperature, top_p, top_k), uniform))
    assert row[token] > -torch.inf


def test_only_rows_that_ask_for_it_are_drawn() -> None:
    rows = torch.stack([LOGITS, LOGITS, LOGITS])
    tokens = choose(rows.argmax(-1), rows, [(1, Sampling(1, 1.0), 0.999)])
    assert tokens.tolist() == [0, 5, 0]


def test_temperature_zero_and_a_single_candidate_are_greedy() -> None:
    assert is_greedy(Sampling(1))
    assert is_greedy(Sampling(1, 0.7, top_k=1))
    assert not is_greedy(Sampling(1, 0.7))


def numbers(prompt: tuple[int, ...], seed: int, deployment_seed: int) -> list[float]:
    request = Request("any", "any", prompt, None, Unconstrained(), Sampling(1, 1.0, seed=seed))
    drawn = stream(request, deployment_seed)
    return [drawn.random() for _ in range(3)]


def test_the_random_numbers_depend_on_both_seeds_and_the_prompt() -> None:
    assert numbers((1, 2), 0, 0) == numbers((1, 2), 0, 0)
    assert (
        len({tuple(numbers(*case)) for case in [((1, 2), 0, 0), ((1, 2), 1, 0), ((1, 2), 0, 1), ((1, 3), 0, 0)]}) == 4
    )
