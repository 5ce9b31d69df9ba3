"""Scores of many continuations equal those of a plain forward pass over each."""

from collections.abc import Iterator

import pytest
import torch
from embedded_models import tiny_network
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.deployments.embedded.model import Model
from harness.deployments.embedded.scoring import Scorer
from harness.deployments.embedded.slots import Slots
from harness.deployments.embedded.tree import tree

CHUNK = 16


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(tiny_network(), torch.device("cpu"))


@pytest.fixture(scope="module")
def scorer(model: Model) -> Iterator[Scorer]:
    with torch.inference_mode():
        yield Scorer(model, Slots(model.store(4), 4, 128, reuse=True), CHUNK, reuse=True)


@torch.inference_mode()
def plain(model: Model, prompt: list[int], continuation: list[int]) -> list[float]:
    logits = model.network(torch.tensor([[*prompt, *continuation]]), use_cache=False).logits[0].log_softmax(-1)
    return [float(logits[len(prompt) + i - 1, token]) for i, token in enumerate(continuation)]


few = st.integers(0, 3)
prompts = st.lists(few, min_size=1, max_size=40)
continuations = st.lists(st.lists(few, min_size=1, max_size=7), min_size=1, max_size=20)


@settings(max_examples=60, deadline=None)
@given(prompt=prompts, asked=continuations)
def test_scores_equal_a_full_forward_pass(
    model: Model, scorer: Scorer, prompt: list[int], asked: list[list[int]]
) -> None:
    with torch.inference_mode():
        scores = scorer.score(prompt, asked)
    for ids, found in zip(asked, scores, strict=True):
        assert found.token_ids == tuple(ids)
        assert found.logprobs == pytest.approx(plain(model, prompt, ids), abs=1e-4)


def test_what_continuations_share_is_one_node_and_last_tokens_are_none() -> None:
    branches = tree([[1, 2, 3], [1, 2, 4], [1], [5]])
    assert branches.tokens == (1, 2)
    assert branches.parents == (-1, 0)
    assert branches.paths == ((-1, 0, 1), (-1, 0, 1), (-1,), (-1,))


def test_each_node_looks_at_its_ancestors_and_itself() -> None:
    branches = tree([[1, 2, 9], [3, 4, 9]])
    looks = branches.ancestors()
    seen = {branches.tokens[i]: {branches.tokens[j] for j in torch.nonzero(looks[i])[:, 0].tolist()} for i in range(4)}
    assert seen == {1: {1}, 2: {1, 2}, 3: {3}, 4: {3, 4}}
