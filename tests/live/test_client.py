"""The SGLang client against a real server of a real model."""

import asyncio
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from harness.deployments.sglang import (
    ChatMessage,
    Generated,
    RejectedError,
    Retries,
    ServerGrammar,
    SGLangBackend,
    TimedOutError,
    TokenLogprob,
)
from harness.deployments.sglang.launch import Server
from harness.deployments.sglang.values import MASKED
from harness.errors import DeploymentError
from harness.request import Sampling

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]  # servers start slowly beside other work

ASK = [ChatMessage("user", "Is the sky blue? Answer yes or no.")]
CONVERSATIONS = [
    ASK,
    [ChatMessage("system", "Be brief. Ä 🙂"), ChatMessage("user", "Hi."), ChatMessage("assistant", "Hello."), *ASK],
    [ChatMessage("user", "")],
]
SMILES = ServerGrammar("regex", "🙂🙂 naïve")


class Weights:
    """The same weights in transformers, in float32: what the model's own probabilities are."""

    def __init__(self, folder: Path) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        torch.set_num_threads(1)
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def prompt_ids(self, messages: Sequence[ChatMessage]) -> tuple[int, ...]:
        turns = [{"role": message.role, "content": message.content} for message in messages]
        text = self.tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        return tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def logprobs(self, prompt: Sequence[int], continuation: Sequence[int]) -> list[float]:
        import torch

        ids = torch.tensor([[*prompt, *continuation]])
        with torch.inference_mode():
            rows = self._model(ids).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        return [float(row[token]) for row, token in zip(rows, continuation, strict=True)]


@pytest.fixture(scope="module")
def weights(model: Path) -> Weights:
    return Weights(model)


def generated(backend: SGLangBackend, prompt: Sequence[int], max_tokens: int, **options: Any) -> Generated:
    return backend.generate(prompt, sampling=Sampling(max_tokens), **options)


def post(server: Server, path: str, body: dict[str, Any]) -> httpx.Response:
    return httpx.post(server.root_url + path, json=body, timeout=60.0)


# Prompts


@pytest.mark.parametrize("messages", CONVERSATIONS)
def test_chat_and_score_see_the_ids_that_the_servers_own_chat_endpoint_and_the_template_make(
    backend: SGLangBackend, server: Server, weights: Weights, messages: list[ChatMessage]
) -> None:
    """BC-24: four paths, one prompt. The client also checks the server's own count on every answer."""
    chatted = backend.chat(messages, constrain_labels=["a"])
    scored = backend.score(messages, "a")
    turns = [{"role": message.role, "content": message.content} for message in messages]
    body = {"model": "m", "messages": turns, "max_tokens": 1, "return_token_ids": True}
    native = post(server, "/v1/chat/completions", body).json()["choices"][0]["prompt_token_ids"]
    assert chatted.prompt_ids == scored.prompt_ids == tuple(native) == weights.prompt_ids(messages)


def test_tokens_have_the_ids_and_texts_of_the_models_tokenizer(backend: SGLangBackend, weights: Weights) -> None:
    text = "Hello 🤹 naïve  x\n"
    tokens = backend.tokenize(text)
    assert [token.id for token in tokens] == weights.tokenizer(text, add_special_tokens=False)["input_ids"]
    assert [token.text for token in tokens] == [weights.tokenizer.decode([token.id]) for token in tokens]
    assert any("�" in token.text for token in tokens)


@pytest.mark.parametrize(("context", "text"), [("Gre", "en"), ("Label:", " yes"), ("Label: ", "yes"), ("a\n", "\nb")])
def test_a_continuation_never_changes_the_tokens_before_it(
    backend: SGLangBackend, weights: Weights, context: str, text: str
) -> None:
    """BC-27."""
    before = [token.id for token in backend.tokenize(context)]
    after = [token.id for token in backend.tokenize(text, context=context)]
    assert weights.tokenizer.decode(before + after) == context + text
    assert weights.tokenizer.decode(after) == text


# Labels


@pytest.mark.parametrize("labels", [["no", "no idea"], ["yes"], ["a.b*(c)", "[x] \\d"], ["Größe 🙂", "naïve"]])
def test_the_answer_is_one_of_the_labels(backend: SGLangBackend, labels: list[str]) -> None:
    said = backend.chat(ASK, constrain_labels=labels)
    assert said.label in labels
    assert (said.text, said.finish) == (said.label, "stop")


def test_a_budget_that_cuts_a_label_gives_none(server: Server, model: Path) -> None:
    with SGLangBackend(model.name, server.base_url, max_tokens=1) as short:
        said = short.chat(ASK, constrain_labels=["completely impossible"])
    assert (said.label, said.finish, said.completion_tokens) == (None, "length", 1)


def test_a_free_chat_is_what_the_servers_own_chat_endpoint_says(server: Server, model: Path) -> None:
    with SGLangBackend(model.name, server.base_url, max_tokens=12) as short:
        said = short.chat(ASK)
    turns = [{"role": "user", "content": ASK[0].content}]
    body = {"model": "m", "messages": turns, "max_tokens": 12, "temperature": 0.0}
    native = post(server, "/v1/chat/completions", body).json()["choices"][0]
    assert (said.text, said.finish) == (native["message"]["content"], native["finish_reason"])
    assert said.label is None


# Log-probabilities


def test_scores_are_the_models_own_probabilities(backend: SGLangBackend, weights: Weights) -> None:
    """BC-28: a value for each token of the completion, before any mask."""
    for completion in ("yes", " no idea", "Größe 🤹", "\n"):
        scored = backend.score(ASK, completion)
        ids = [token.id for token in scored.tokens]
        assert weights.tokenizer.decode(ids) == completion
        assert [token.logprob for token in scored.tokens] == pytest.approx(
            weights.logprobs(scored.prompt_ids, ids), abs=2e-3
        )


def test_the_last_token_of_the_vocabulary_is_scored_as_itself(backend: SGLangBackend, weights: Weights) -> None:
    """The server reports its id as 0."""
    last = len(weights.tokenizer) - 1
    prompt = weights.prompt_ids(ASK)
    tokens = backend.score_ids(prompt, [last, 5])
    assert [token.id for token in tokens] == [last, 5]
    assert [token.logprob for token in tokens] == pytest.approx(weights.logprobs(prompt, [last, 5]), abs=2e-3)


def test_free_generation_reports_the_probabilities_that_scoring_gives(backend: SGLangBackend, weights: Weights) -> None:
    prompt = weights.prompt_ids(ASK)
    made = generated(backend, prompt, 12, logprobs=True)
    assert made.tokens is not None
    scored = backend.score_ids(prompt, made.token_ids)
    assert [t.logprob for t in made.tokens] == pytest.approx([t.logprob for t in scored], abs=2e-3)


def test_a_chats_logprobs_are_taken_after_the_mask(backend: SGLangBackend) -> None:
    """BC-31: over the tokens that may begin a label they add up to 1; the odds between two stay the model's own."""
    said = backend.chat(ASK, constrain_labels=["yes", "no"], logprobs=True, top_logprobs=20)
    assert said.tokens is not None
    top = {token.id: token.logprob for token in said.tokens[0].top if token.logprob > MASKED}
    yes, no = (backend.score(ASK, label).tokens[0] for label in ("yes", "no"))
    assert math.fsum(math.exp(value) for value in top.values()) == pytest.approx(1.0, abs=1e-4)
    assert top[yes.id] - top[no.id] == pytest.approx(yes.logprob - no.logprob, abs=2e-3)
    assert top[yes.id] - yes.logprob > 1.0


def test_top_tokens_with_equal_texts_stay_apart(backend: SGLangBackend) -> None:
    """BC-30: halves of characters all read U+FFFD."""
    with_halves = backend.chat(ASK, constrain_labels=["🤹", "🙃", "🦜", "🧭"], logprobs=True, top_logprobs=20)
    assert with_halves.tokens is not None
    rows = [token.top for token in with_halves.tokens]
    assert all(len({token.id for token in row}) == 20 for row in rows)
    assert any(len({token.text for token in row if token.logprob > MASKED}) < _allowed(row) for row in rows)


def _allowed(row: Sequence[TokenLogprob]) -> int:
    return sum(token.logprob > MASKED for token in row)


def test_every_row_belongs_to_its_token(backend: SGLangBackend) -> None:
    """BC-32: at temperature 0 and above it, streamed and not."""
    cool = backend.chat(ASK, constrain_labels=["yes", "no"], logprobs=True)
    prompt = cool.prompt_ids
    warm = backend.generate(prompt, sampling=Sampling(16, temperature=1.2), logprobs=True, top_logprobs=5)
    greedy = backend.generate(prompt, sampling=Sampling(16), logprobs=True, top_logprobs=5)
    for said in (cool, warm, greedy):
        assert said.tokens is not None
        assert len(said.tokens) == said.completion_tokens
        assert [token.id for token in said.tokens] == list(said.token_ids)
        assert all(token.aligned for token in said.tokens)


# Streams


def test_a_streamed_text_with_split_characters_is_whole(
    backend: SGLangBackend, server: Server, weights: Weights
) -> None:
    """BC-19: the same text streamed, not streamed, and decoded from the ids."""
    prompt = weights.prompt_ids(ASK)
    streamed = generated(backend, prompt, 40, grammar=SMILES)
    body = {"input_ids": prompt, "sampling_params": {"max_new_tokens": 40, "temperature": 0.0, "regex": SMILES.text}}
    whole = post(server, "/generate", body).json()
    assert streamed.text == whole["text"] == "🙂🙂 naïve"
    assert list(streamed.token_ids) == whole["output_ids"]
    assert weights.tokenizer.decode(streamed.token_ids, skip_special_tokens=True) == "🙂🙂 naïve"


def test_every_token_has_an_arrival_and_the_last_one_is_the_stop_token(
    backend: SGLangBackend, weights: Weights
) -> None:
    """BC-19: counts come from the server, not from pieces of text."""
    made = generated(backend, weights.prompt_ids(ASK), 40, grammar=SMILES)
    assert len(made.timing.token_s) == made.completion_tokens == len(made.token_ids)
    assert list(made.timing.token_s) == sorted(made.timing.token_s)
    assert made.timing.first_token_s == made.timing.token_s[0]
    assert (made.token_ids[-1], made.finish) == (weights.tokenizer.eos_token_id, "stop")


def test_a_generation_says_why_it_ended(backend: SGLangBackend, weights: Weights) -> None:
    prompt = weights.prompt_ids(ASK)
    assert generated(backend, prompt, 2).finish == "length"
    sentence = ServerGrammar("regex", "No, the sky is blue")
    stopped = backend.generate(prompt, sampling=Sampling(40, stop=("he",)), grammar=sentence)
    assert (stopped.finish, stopped.text) == ("stop_string", "No, t")
    assert generated(backend, prompt, 40, grammar=sentence).finish == "stop"


def test_many_calls_at_once_are_each_answered_alone(server: Server, model: Path) -> None:
    """Every answer belongs to its question: each is held to a label of its own."""

    async def ask_all() -> list[Any]:
        async with SGLangBackend(model.name, server.base_url) as client:
            return await asyncio.gather(*(client.achat(ASK, constrain_labels=[f"label {n}"]) for n in range(32)))

    answers = asyncio.run(ask_all())
    assert [said.label for said in answers] == [f"label {n}" for n in range(32)]
    assert len({said.request_id for said in answers}) == 32


def test_both_faces_give_the_same(backend: SGLangBackend) -> None:
    async def ask() -> tuple[Any, Any, Any]:
        return (
            await backend.achat(ASK, constrain_labels=["yes", "no"]),
            await backend.ascore(ASK, "yes"),
            await backend.atokenize("yes", context="Label:"),
        )

    chatted, scored, tokens = asyncio.run(ask())
    asyncio.run(backend.aclose())
    assert chatted.label == backend.chat(ASK, constrain_labels=["yes", "no"]).label
    assert scored.total == pytest.approx(backend.score(ASK, "yes").total, abs=2e-3)
    assert tokens == backend.tokenize("yes", context="Label:")


# Failures


def test_a_constraint_that_does_not_compile_is_refused_streamed_or_not(
    backend: SGLangBackend, server: Server, model: Path, weights: Weights
) -> None:
    """BC-21: streamed, the refusal comes with HTTP 200 and a token that nobody may take for an answer."""
    with pytest.raises(RejectedError, match="Failed to compile regex grammar") as streamed:
        generated(backend, weights.prompt_ids(ASK), 4, grammar=ServerGrammar("regex", "("))
    with (
        SGLangBackend(model.name, server.base_url, extra_body={"sampling_params": {"regex": "("}}) as broken,
        pytest.raises(RejectedError, match="Failed to compile regex grammar") as whole,
    ):
        broken.chat(ASK)
    assert (streamed.value.status, streamed.value.attempts) == (whole.value.status, whole.value.attempts) == (400, 1)


@pytest.mark.parametrize(
    ("sampling", "message"),
    [({"no_such_field": 1}, "unknown field"), ({"min_p": 7.0}, "min_p"), ({"min_new_tokens": "x"}, "invalid type")],
)
def test_fields_that_the_server_refuses_come_back_with_its_reason(
    server: Server, model: Path, sampling: dict[str, Any], message: str
) -> None:
    with (
        SGLangBackend(model.name, server.base_url, extra_body={"sampling_params": sampling}) as wrong,
        pytest.raises(RejectedError, match=message),
    ):
        wrong.chat(ASK)


def test_a_prompt_longer_than_the_context_is_refused(backend: SGLangBackend) -> None:
    with pytest.raises(RejectedError, match="longer than the model's context length"):
        generated(backend, [5] * 9000, 4)
    with pytest.raises(RejectedError, match="longer than the model's context length"):
        backend.score_ids([5] * 9000, [5])


def test_after_a_timeout_the_server_stops_working_on_the_request(server: Server, model: Path, weights: Weights) -> None:
    """BC-22: the cache can only be flushed when no request runs."""
    with SGLangBackend(model.name, server.base_url, timeout=1.5) as hasty:
        hasty.retries = Retries(attempts=1)
        with pytest.raises(TimedOutError):
            generated(hasty, weights.prompt_ids(ASK), 4000, grammar=ServerGrammar("regex", "[a-z ]{3990,4000}"))
    assert _idle_within(server, 20.0)


def test_a_cancelled_call_stops_the_server_too(server: Server, model: Path, weights: Weights) -> None:
    async def cancel() -> None:
        async with SGLangBackend(model.name, server.base_url) as client:
            long = client.agenerate(
                weights.prompt_ids(ASK), sampling=Sampling(4000), grammar=ServerGrammar("regex", "[a-z ]{3990,4000}")
            )
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(long, 1.5)

    asyncio.run(cancel())
    assert _idle_within(server, 20.0)


def _idle_within(server: Server, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if post(server, "/flush_cache", {}).status_code == 200:
            return True
        time.sleep(0.2)
    return False


# The server


def test_the_server_says_what_it_is(backend: SGLangBackend, model: Path) -> None:
    info = backend.server_info()
    assert (info["version"], info["model_path"], info["dtype"]) == ("0.5.23", str(model), "float32")


def test_a_client_of_another_model_is_refused(server: Server) -> None:
    with (
        SGLangBackend("another-model", server.base_url) as other,
        pytest.raises(DeploymentError, match="another-model"),
    ):
        other.chat(ASK)
