"""Tiny language models with random weights and a real tokenizer, saved as folders, and a way to run them in tests."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from tokenizers_built import byte_level
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from harness.constraint import Constraint
from harness.deployment import Deployment, DeploymentFactory
from harness.method import Method, Unconstrained
from harness.request import Completion, Failure, Request, Sampling, Scores

WIDTH = 480
"""More logits than the tokenizer has tokens."""


def tiny_network(layers: int = 2, **changes: Any) -> LlamaForCausalLM:
    """A Llama of two layers, with weights large enough for the logits to differ."""
    torch.manual_seed(5)
    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2}
    config = LlamaConfig(
        vocab_size=WIDTH,
        num_hidden_layers=layers,
        max_position_embeddings=512,
        initializer_range=0.3,
        **sizes,
        **changes,
    )
    return LlamaForCausalLM(config).eval()


def save_tiny(folder: Path) -> Path:
    """The tiny model with its tokenizer, as a folder that any loader reads."""
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=byte_level(), eos_token="<|end|>")
    network = tiny_network()
    with torch.no_grad():
        network.lm_head.weight[len(tokenizer) :] = 0.0  # else it would say ids that are no tokens
    network.generation_config.eos_token_id = tokenizer.eos_token_id
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


class Running:
    """A started deployment and the event loop that tests talk to it with."""

    def __init__(self, deployment: Deployment, runner: asyncio.Runner) -> None:
        self.deployment, self.runner = deployment, runner

    def ids(self, text: str) -> tuple[int, ...]:
        return self.runner.run(self.deployment.tokenize(text))

    def ask(self, *requests: Request, at_once: int = 1000) -> list[Completion | Failure]:
        """All answers, in order; at most `at_once` requests run at the same time."""

        async def together() -> list[Completion | Failure]:
            door = asyncio.Semaphore(at_once)

            async def one(request: Request) -> Completion | Failure:
                async with door:
                    return await self.deployment.generate(request)

            return await asyncio.gather(*map(one, requests))

        return self.runner.run(together())

    def completions(self, *requests: Request, at_once: int = 1000) -> list[Completion]:
        """The same where no request fails."""
        answers = self.ask(*requests, at_once=at_once)
        failed = [answer for answer in answers if isinstance(answer, Failure)]
        assert failed == []
        return [answer for answer in answers if isinstance(answer, Completion)]

    def score(self, prompt: Sequence[int], *continuations: Sequence[int]) -> tuple[Scores, ...]:
        return self.runner.run(self.deployment.score(prompt, continuations))


@contextmanager
def running(factory: DeploymentFactory) -> Iterator[Running]:
    """`factory` started, and stopped at the end."""
    with asyncio.Runner() as runner:
        context = factory.start()
        deployment = runner.run(context.__aenter__())
        try:
            yield Running(deployment, runner)
        finally:
            runner.run(context.__aexit__(None, None, None))


def free(name: str, prompt: Sequence[int], tokens: int = 8, cache: str = "", **sampling: Any) -> Request:
    """A request that nothing constrains."""
    return Request(name, name, tuple(prompt), None, Unconstrained(), Sampling(tokens, **sampling), cache)


def steered(name: str, prompt: Sequence[int], constraint: Constraint, method: Method, tokens: int = 24) -> Request:
    """A constrained request."""
    return Request(name, name, tuple(prompt), constraint, method, Sampling(tokens))
