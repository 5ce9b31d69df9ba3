"""Does the harness measure a server as SGLang's own benchmark does?

    python benchmarks/sglang_serving.py [prompts] [rounds] [concurrency]

`python -m sglang.benchmark.serving` and the harness's `none` arm take turns on one server (on the CPU, in the
environment of `make sglang-cpu`), with the same prompts (put through the chat template here), concurrency, sampling and
log-probabilities, each time on an empty cache. Medians over rounds are shown; the two should be within 5 percent.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import httpx
import msgspec

from harness.deployment import Deployment
from harness.deployments.sglang.config import SGLangLaunch
from harness.deployments.sglang.deployment import SGLangDeployment
from harness.load import Closed, drive
from harness.method import Unconstrained
from harness.prompt import Prompter
from harness.request import Completion, Request, Sampling

OUTPUT = 32
SERVER = SGLangLaunch(
    python=".venv-sglang/bin/python",
    device="cpu",
    dtype="float32",
    grammar_backend="llguidance",
    ready_within_s=300.0,
)


class Speed(msgspec.Struct, frozen=True):
    """Medians over requests in milliseconds, tokens a second over the whole turn, tokens in all."""

    ttft_ms: float
    tpot_ms: float
    tokens_per_s: float
    tokens: int


def texts(count: int) -> list[str]:
    """Prompts of one length, as the order, which SGLang's benchmark shuffles, decides who waits for whose prefill; and
    of different beginnings, so that no prefix is shared."""
    return [f"{100003 + n * 7919} reasons to visit a town by the sea: " + "tell me more. " * 5 for n in range(count)]


async def ours(deployment: Deployment, prompts: Sequence[tuple[int, ...]], concurrency: int, turn: int) -> Speed:
    """The `none` arm's turn."""

    async def ask(place: int) -> Completion:
        name = f"{turn}.{place}"
        sampling = Sampling(OUTPUT)
        answer = await deployment.generate(
            Request(name, name, prompts[place], None, Unconstrained(), sampling, f"turn {turn}")
        )
        assert isinstance(answer, Completion), answer
        return answer

    began = time.perf_counter()
    answers = [answer async for answer, _ in drive(range(len(prompts)), ask, Closed(concurrency), 0)]
    took_s = time.perf_counter() - began
    tokens = sum(answer.completion_tokens for answer in answers)
    tpots = [
        (a.timing.done_s - a.timing.first_token_s) / (a.completion_tokens - 1)
        for a in answers
        if a.completion_tokens > 1
    ]
    ttft_ms = 1000 * statistics.median(answer.timing.first_token_s for answer in answers)
    return Speed(ttft_ms, 1000 * statistics.median(tpots), tokens / took_s, tokens)


def theirs(url: str, model: str, data: Path, count: int, concurrency: int) -> Speed:
    """The turn of SGLang's benchmark, a process of its own as it is run by hand."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as out:
        command = [
            *(SERVER.interpreter, "-m", "sglang.benchmark.serving", "--backend", "sglang", "--base-url", url),
            *("--model", model, "--dataset-name", "custom", "--dataset-path", str(data)),
            *("--sharegpt-output-len", str(OUTPUT), "--num-prompts", str(count), "--disable-ignore-eos"),
            *("--max-concurrency", str(concurrency), "--return-logprob", "--warmup-requests", "0"),
            *("--disable-tqdm", "--output-file", out.name),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(done.stdout[-1500:] + done.stderr[-1500:])
        said = json.loads(Path(out.name).read_text().splitlines()[-1])
    return Speed(said["median_ttft_ms"], said["median_tpot_ms"], said["output_throughput"], said["total_output_tokens"])


async def measure(count: int, rounds: int, concurrency: int) -> None:
    async with SERVER.start() as deployment:
        assert isinstance(deployment, SGLangDeployment)
        model = deployment.info.tokenizer
        prompter = Prompter.load(model)
        made = [prompter.prompt(text) for text in texts(count)]
        prompts = [prompt.ids for prompt in made]
        url = str(deployment.info.details["url"]).removesuffix("/v1")
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "prompts.jsonl"
            data.write_text("\n".join(json.dumps(_conversation(prompt.text)) for prompt in made))
            await ours(deployment, prompts, concurrency, -1)
            found: dict[str, list[Speed]] = {"harness": [], "sglang": []}
            for turn in range(rounds):
                for who in ("harness", "sglang") if turn % 2 else ("sglang", "harness"):
                    httpx.post(f"{url}/flush_cache", timeout=30.0)
                    if who == "harness":
                        found[who].append(await ours(deployment, prompts, concurrency, turn))
                    else:
                        found[who].append(await asyncio.to_thread(theirs, url, model, data, count, concurrency))
                    print(turn, who, found[who][-1], flush=True)
    show(found)


def _conversation(text: str) -> dict[str, object]:
    return {"conversations": [{"content": text}, {"content": " ".join(["word"] * OUTPUT)}]}


def show(found: dict[str, list[Speed]]) -> None:
    """Medians over rounds, and how far apart."""
    for column in ("ttft_ms", "tpot_ms", "tokens_per_s", "tokens"):
        mine, other = (statistics.median(getattr(speed, column) for speed in found[who]) for who in found)
        print(f"{column:<14} harness {mine:10.2f}   sglang {other:10.2f}   harness/sglang {mine / other:.3f}")


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    asyncio.run(measure(*(given + [48, 4, 8][len(given) :])))
