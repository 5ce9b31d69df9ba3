"""What the batching loop costs: its decode throughput against the bare model's, in one process, turn by turn.

    python benchmarks/embedded_throughput.py --threads 2 --batch 1 8 32

The bare loop calls the same weights with transformers' own caches (the growing one, and the static one of just the
right size), takes the likeliest tokens and hands them back to Python, as any loop must. The harness's loop does what it
does in a run: log-probabilities, traces, times, sampling, delivery. Both decode the same prompts; prefill is left out
of both. Turns alternate, medians are shown, and ratios are to the faster bare loop.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import torch
from transformers import DynamicCache, StaticCache

from harness.constraint import Regex
from harness.deployments.embedded.config import Embedded, thread_count
from harness.deployments.embedded.deployment import EmbeddedDeployment, engine
from harness.deployments.embedded.loading import Loaded, loaded
from harness.deployments.embedded.loop import Loop
from harness.deployments.embedded.maskers import Maskers
from harness.deployments.embedded.model import Model
from harness.method import Native
from harness.request import Completion, Request, Sampling

Prompts = Sequence[tuple[int, ...]]
ANYTHING = Regex(r"[^\x00]*\x00")
"""A constraint that never completes here and allows nearly everything: masks are made and applied at every step."""


LEAD = 16
"""Tokens said before the clock runs: the harness's loop computes prompts in chunks, so its sequences start one after
another. The bare loop says as many first, so that both are timed at the same lengths."""


class Shape(msgspec.Struct, frozen=True):
    """How many sequences, tokens in each prompt, tokens decoded."""

    batch: int
    prompt: int
    tokens: int


def main() -> None:
    arguments = _arguments()
    config = Embedded(threads=arguments.threads, dtype=arguments.dtype, max_batch=max(arguments.batch), context=1024)
    parts = loaded(config)
    maskers = Maskers(parts.vocabulary)
    loop = Loop(engine(parts, config), thread_count(config.threads))
    deployment = EmbeddedDeployment(parts, loop, maskers)
    print(f"{config.dtype}, {thread_count(config.threads)} threads, {torch.get_num_threads()} in the bare loop")
    print("| batch | bare, growing cache | bare, static cache | loop | loop with masks | loop / bare | masks / bare |")
    print("|---|---|---|---|---|---|---|")
    for batch in arguments.batch:
        print(_row(Shape(batch, arguments.prompt, arguments.tokens), deployment, parts, arguments.turns), flush=True)
    loop.stop()
    maskers.stop()


def _row(shape: Shape, deployment: EmbeddedDeployment, parts: Loaded, turns: int) -> str:
    ways: dict[str, Callable[[Prompts], float]] = {
        "growing": lambda prompts: bare(parts.model, prompts, shape.tokens, _growing),
        "static": lambda prompts: bare(parts.model, prompts, shape.tokens, _static),
        "loop": lambda prompts: harness(deployment, prompts, shape.tokens, masked=False),
        "masks": lambda prompts: harness(deployment, prompts, shape.tokens, masked=True),
    }
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(turns + 1):
        for name, way in ways.items():
            rate = way(_prompts(shape, turn, parts))
            if turn:  # the first turn is a warm-up
                rates[name].append(rate)
    growing, static, free, masked = (statistics.median(rates[name]) for name in ways)
    best = max(growing, static)
    cells = [f"{rate:.0f} tok/s" for rate in (growing, static, free, masked)]
    return f"| {shape.batch} | " + " | ".join(cells) + f" | {free / best:.3f} | {masked / best:.3f} |"


@torch.inference_mode()
def bare(model: Model, prompts: Prompts, tokens: int, new_cache: Callable[[Model, int], Any]) -> float:
    """Tokens a second of a plain decoding loop."""
    ids = torch.tensor(prompts, device=model.device)
    cache = new_cache(model, ids.shape[1] + LEAD + tokens)
    network, said = model.network, ids
    durations = []
    for _ in range(LEAD + tokens):
        begin = time.perf_counter()
        logits = network(input_ids=said, use_cache=True, logits_to_keep=1, **{model.cache_name: cache}).logits
        said = torch.tensor(logits[:, -1].argmax(-1).tolist(), device=model.device)[:, None]
        durations.append(time.perf_counter() - begin)
    return len(prompts) * tokens / sum(durations[LEAD:])


def harness(deployment: EmbeddedDeployment, prompts: Prompts, tokens: int, masked: bool) -> float:
    """Tokens a second while all sequences decode: from the last first token to the first end."""
    constraint = ANYTHING if masked else None
    requests = [
        Request(f"{i}", f"{i}", prompt, constraint, Native(), Sampling(LEAD + tokens))
        for i, prompt in enumerate(prompts)
    ]

    async def together() -> list[Any]:
        return await asyncio.gather(*map(deployment.generate, requests))

    answers = [answer for answer in asyncio.run(together()) if isinstance(answer, Completion)]
    if [answer.finish for answer in answers] != ["length"] * len(prompts):
        raise SystemExit("a request failed or ended early; try another model or --prompt")
    instants = [[answer.timing.sent_s + at for at in answer.timing.token_s] for answer in answers]
    begin, end = max(each[0] for each in instants), min(each[-1] for each in instants)
    return sum(begin < at <= end for each in instants for at in each) / (end - begin)


def _growing(model: Model, length: int) -> Any:
    return DynamicCache(config=model.network.config)


def _static(model: Model, length: int) -> Any:
    return StaticCache(config=model.network.config, max_cache_len=length)


def _prompts(shape: Shape, turn: int, parts: Loaded) -> Prompts:
    """Counting from different numbers, anew each turn, so that nothing is reused and no answer ends by itself."""
    starts = [1000 * (turn + 1) + 17 * row for row in range(shape.batch)]
    texts = [", ".join(str(start + i) for i in range(shape.prompt)) for start in starts]
    return [parts.prompter.encode(text)[: shape.prompt] for text in texts]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--threads", type=int, default=0, help="0: one fewer than there are cores")
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float16", "float32"])
    parser.add_argument("--prompt", type=int, default=64, help="tokens in each prompt")
    parser.add_argument("--tokens", type=int, default=48, help="tokens decoded in each turn")
    parser.add_argument("--turns", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
