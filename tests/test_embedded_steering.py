"""Masks and processors' logits on the logits of a step, and what is then known about the tokens that were said."""

import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.deployments.embedded.row import Row, Said, Ticket
from harness.deployments.embedded.speaking import speak
from harness.deployments.embedded.steering import steer
from harness.mask import Mask, allow, empty_mask
from harness.method import Unconstrained
from harness.processors.masker import Masked, Rewritten, Steering
from harness.request import Failure, Request, Sampling


def mask_of(width: int, tokens: list[int]) -> Mask:
    mask = empty_mask(width)
    allow(mask, np.array(tokens, dtype=np.int64))
    return mask


def row(**sampling: float) -> Row:
    request = Request("r", "r", (1,), None, Unconstrained(), Sampling(4, **sampling))  # type: ignore[arg-type]
    return Row(Ticket(request), None, 0, 0, 1, [1], random.Random(0))


def said(raw: torch.Tensor, answers: dict[int, Steering]) -> list[Said | Failure]:
    return speak([row() for _ in raw], raw, steer(raw, answers), answers)


def one(logits: torch.Tensor, answer: Steering) -> Said | Failure:
    return said(logits[None], {0: answer})[0]


widths = st.integers(1, 100)


@settings(deadline=None)
@given(data=st.data(), width=widths, count=st.integers(1, 4))
def test_masked_rows_say_the_likeliest_allowed_token_and_know_what_the_mask_kept(
    data: st.DataObject, width: int, count: int
) -> None:
    raw = torch.randn((count, width), generator=torch.Generator().manual_seed(data.draw(st.integers(0, 99)))) * 8
    tokens = st.lists(st.integers(0, width - 1), min_size=1, unique=True)
    kept = {place: data.draw(tokens) for place in range(count) if data.draw(st.booleans())}
    answers: dict[int, Steering] = {place: Masked(mask_of(width, ids), 0.0) for place, ids in kept.items()}
    before = raw.clone()
    for place, result in enumerate(said(raw, answers)):
        assert isinstance(result, Said)
        ids = kept.get(place, list(range(width)))
        log_probabilities = raw[place].double().log_softmax(-1)
        mass = log_probabilities[ids].exp().sum().item()
        assert result.token == max(ids, key=lambda token: (raw[place, token].item(), -token))
        assert result.wanted == int(raw[place].argmax())
        assert result.allowed == (len(ids) if place in kept else None)
        assert result.mass == pytest.approx(mass, rel=1e-4)
        assert result.raw_logprob == pytest.approx(log_probabilities[result.token].item(), abs=1e-4)
        assert result.masked_logprob == pytest.approx(log_probabilities[result.token].item() - np.log(mass), abs=1e-4)
        assert result.wanted_logprob == pytest.approx(log_probabilities.max().item(), abs=1e-4)
    assert torch.equal(raw, before)


def test_the_mass_of_a_very_unlikely_token_is_no_zero() -> None:
    logits = torch.tensor([0.0, -80.0, -85.0])
    result = one(logits, Masked(mask_of(3, [1, 2]), 0.0))
    assert isinstance(result, Said)
    assert np.log(result.mass) == pytest.approx(-80 + np.log(1 + np.exp(-5)), rel=1e-5)
    assert result.masked_logprob == pytest.approx(-np.log(1 + np.exp(-5)), rel=1e-4)


def test_bits_past_the_width_allow_nothing() -> None:
    mask = np.array([1 << 3], dtype=np.int32)
    result = one(torch.tensor([1.0, 2.0, 3.0]), Masked(mask, 0.0))
    assert isinstance(result, Failure)
    assert (result.failure, "no token" in result.message) == ("processor", True)


def test_new_logits_decide_and_their_mass_is_what_they_left_possible() -> None:
    raw = torch.tensor([0.0, 1.0, 2.0, 3.0])
    new = torch.tensor([5.0, -torch.inf, 1.0, torch.finfo(torch.float32).min])
    result = one(raw, Rewritten(new, 0.0))
    assert isinstance(result, Said)
    assert (result.token, result.allowed, result.wanted) == (0, 2, 3)
    assert result.masked_logprob == pytest.approx(torch.tensor([5.0, 1.0]).log_softmax(-1)[0].item(), rel=1e-5)
    assert result.raw_logprob == pytest.approx(raw.log_softmax(-1)[0].item(), rel=1e-5)
    assert result.mass == pytest.approx(raw.softmax(-1)[[0, 2]].sum().item(), rel=1e-5)


@pytest.mark.parametrize(
    ("logits", "problem"),
    [
        (torch.zeros(3), "shape"),
        (torch.zeros(1, 4), "shape"),
        (torch.zeros(4, dtype=torch.long), "int64"),
        (torch.tensor([0.0, 1.0, torch.nan, 0.0]), "NaN"),
        (torch.tensor([0.0, torch.inf, 0.0, 0.0]), "infinity"),
        (torch.full((4,), -torch.inf), "no token"),
        (torch.full((4,), torch.finfo(torch.float32).min), "no token"),
    ],
)
def test_unusable_logits_fail_their_row_and_no_other(logits: torch.Tensor, problem: str) -> None:
    raw = torch.tensor([[0.0, 1.0, 2.0, 3.0], [3.0, 2.0, 1.0, 0.0]])
    bad, good = said(raw, {0: Rewritten(logits, 0.0), 1: Masked(mask_of(4, [2, 3]), 0.0)})
    assert isinstance(bad, Failure)
    assert (bad.failure, problem in bad.message) == ("processor", True)
    assert isinstance(good, Said)
    assert good.token == 2


def test_logits_of_the_model_that_are_no_numbers_fail_their_row() -> None:
    bad, good = said(torch.tensor([[0.0, torch.nan], [0.0, 1.0]]), {})
    assert isinstance(bad, Failure)
    assert bad.failure == "deployment"
    assert isinstance(good, Said)
