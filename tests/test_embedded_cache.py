"""Keys and values in slots: however sequences join, grow and are copied, the model computes what it computes alone."""

import pytest
import torch
from embedded_models import WIDTH, tiny_network
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import MambaConfig, MambaForCausalLM, MistralConfig, MistralForCausalLM, T5Config

from harness.deployments.embedded.cache import causal_plan
from harness.deployments.embedded.model import Model
from harness.errors import DeploymentError

CPU = torch.device("cpu")
SLOTS = 5


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(tiny_network(), CPU)


@torch.inference_mode()
def alone(model: Model, ids: list[int]) -> torch.Tensor:
    """The log-probabilities after `ids`, by transformers without any cache."""
    logits: torch.Tensor = model.network(torch.tensor([ids]), use_cache=False).logits[0, -1]
    return logits.log_softmax(-1)


chunks = st.lists(st.integers(0, WIDTH - 1), max_size=5)
steps = st.lists(st.lists(chunks, min_size=SLOTS, max_size=SLOTS), min_size=1, max_size=4)


@settings(max_examples=40, deadline=None)
@given(steps=steps, order=st.permutations(range(SLOTS)))
def test_any_chunks_of_any_sequences_give_the_logits_of_each_alone(
    model: Model, steps: list[list[list[int]]], order: list[int]
) -> None:
    cache = model.cache(model.store(SLOTS))
    said: list[list[int]] = [[] for _ in range(SLOTS)]
    for step in steps:
        moving = [slot for slot in order if step[slot]]
        if not moving:
            continue
        plan = causal_plan(moving, [len(said[slot]) for slot in moving], [step[slot] for slot in moving])
        logits = model.forward(cache, plan)[:, -1].log_softmax(-1)
        for slot, row in zip(moving, logits, strict=True):
            said[slot] += step[slot]
            torch.testing.assert_close(row, alone(model, said[slot]), atol=1e-4, rtol=0)


def test_single_tokens_beside_sequences_that_stand_still(model: Model) -> None:
    cache = model.cache(model.store(4))
    model.forward(cache, causal_plan((1, 2), (0, 0), ([7, 8, 9], [3, 4])))
    plan = causal_plan((0, 1, 2, 3), (0, 3, 2, 0), ([], [5], [6], []), prompts=False)
    logits = model.forward(cache, plan)[:, -1].log_softmax(-1)
    torch.testing.assert_close(logits[1], alone(model, [7, 8, 9, 5]), atol=1e-4, rtol=0)
    torch.testing.assert_close(logits[2], alone(model, [3, 4, 6]), atol=1e-4, rtol=0)


def test_a_copied_prefix_goes_on_like_its_origin_after_the_store_has_grown(model: Model) -> None:
    store = model.store(3)
    cache = model.cache(store)
    prompt = [i % WIDTH for i in range(3, 300)]
    model.forward(cache, causal_plan((0,), (0,), (prompt,)))
    store.copy(store, 0, 2, 290)
    store.reserve(2 * store.capacity)
    logits = model.forward(cache, causal_plan((2,), (290,), ([11, 12],)))[0, -1].log_softmax(-1)
    torch.testing.assert_close(logits, alone(model, [*prompt[:290], 11, 12]), atol=1e-4, rtol=0)


SMALL = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 1}


def test_a_model_with_a_sliding_window_is_refused() -> None:
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 32}
    network = MistralForCausalLM(MistralConfig(**SMALL, **heads, sliding_window=4)).eval()
    with pytest.raises(DeploymentError, match="plain full attention"):
        Model(network, CPU)


def test_a_state_space_model_is_refused() -> None:
    with pytest.raises(DeploymentError, match="plain full attention"):
        Model(MambaForCausalLM(MambaConfig(**SMALL)).eval(), CPU)


def test_an_encoder_decoder_is_refused() -> None:
    from transformers import T5ForConditionalGeneration

    sizes = {"vocab_size": 64, "d_model": 32, "d_kv": 16, "num_layers": 1, "num_heads": 2, "d_ff": 32}
    with pytest.raises(DeploymentError, match="plain full attention"):
        Model(T5ForConditionalGeneration(T5Config(**sizes)).eval(), CPU)
