"""What exact probabilities of many labels cost: all at once over a trie, against a label at a time.

    python -m benchmarks.label_scoring path/to/banking77 [--dtype float32] [--prompts 3] [--listed]

The folder holds `categories.json` (77 labels) and `test.csv` (messages). Each way gives the log-probability of every
token of every label and of the end, on the same model:

* naive: prompt and label through the model as one sequence, a pass a label, nothing kept;
* kept: the prompt's keys and values are kept, and each label goes through behind them, a pass a label;
* trie: what runs do. The prompt once, then all labels in one pass, what they share once.

Ways take turns on the same prompts, the median of the seconds is shown, and counts are of tokens that went through the
model. `--listed` names all labels in the prompt, as tasks do that a small model is to answer.
"""

import argparse
import csv
import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import torch

from harness.deployments.embedded.cache import Plan, SlotCache, causal_plan
from harness.deployments.embedded.config import Embedded, thread_count
from harness.deployments.embedded.loading import Loaded, loaded
from harness.deployments.embedded.model import Model
from harness.deployments.embedded.scoring import Scorer
from harness.deployments.embedded.slots import Slots
from harness.label_confidence import normalised

Ids = tuple[int, ...]
Way = Callable[["Counted", Ids, Sequence[Ids]], list[float]]


class Counted(Model):
    """A loaded model that counts what goes through it."""

    def __init__(self, model: Model) -> None:
        self.__dict__ |= vars(model)
        self.passes = self.tokens = 0

    def forward(self, cache: SlotCache, plan: Plan) -> torch.Tensor:
        self.passes += 1
        self.tokens += plan.ids.numel() if plan.real is None else len(plan.real)
        return super().forward(cache, plan)


class Took(msgspec.Struct, frozen=True):
    """One way on one prompt: log-probabilities of the labels (nats), passes, tokens, seconds."""

    totals: tuple[float, ...]
    passes: int
    tokens: int
    seconds: float


def naive(model: Counted, prompt: Ids, labels: Sequence[Ids]) -> list[float]:
    """A pass over prompt and label for each label."""
    cache = model.cache(model.store(1))
    totals = []
    for label in labels:
        plan = causal_plan((0,), (0,), ((*prompt, *label[:-1]),))
        logits = model.forward(cache, msgspec.structs.replace(plan, keep=len(label)))[0]
        totals.append(float(logits.log_softmax(-1)[range(len(label)), list(label)].sum()))
    return totals


def kept(model: Counted, prompt: Ids, labels: Sequence[Ids]) -> list[float]:
    """The prompt once, then a pass a label."""
    scorer = _scorer(model)
    return [scorer.score(prompt, [label])[0].total for label in labels]


def trie(model: Counted, prompt: Ids, labels: Sequence[Ids]) -> list[float]:
    """The prompt once, then all labels."""
    return [scores.total for scores in _scorer(model).score(prompt, labels)]


WAYS: dict[str, Way] = {"naive": naive, "kept": kept, "trie": trie}


def _scorer(model: Model) -> Scorer:
    slots = Slots(model.store(1), 1, 2048, reuse=True)
    return Scorer(model, slots, Embedded().prefill_chunk, reuse=True)


def measured(way: Way, model: Model, prompt: Ids, labels: Sequence[Ids]) -> Took:
    """One way on one prompt."""
    counted, begin = Counted(model), time.perf_counter()
    totals = way(counted, prompt, labels)
    return Took(tuple(totals), counted.passes, counted.tokens, time.perf_counter() - begin)


def main() -> None:
    arguments = _arguments()
    parts = loaded(Embedded(dtype=arguments.dtype, context=2048))
    torch.set_num_threads(thread_count(0))
    names = [name.replace("_", " ") for name in json.loads((arguments.data / "categories.json").read_text("utf-8"))]
    labels = [(*parts.prompter.encode(name), parts.vocabulary.stop_ids[0]) for name in names]
    prompts = _prompts(arguments.data / "test.csv", arguments.prompts + 1, names if arguments.listed else [], parts)
    took: dict[str, list[Took]] = {name: [] for name in WAYS}
    for turn, prompt in enumerate(prompts):
        for name, way in WAYS.items():
            one = measured(way, parts.model, prompt, labels)
            if turn:  # the first turn is a warm-up
                took[name].append(one)
    lengths = sorted(map(len, prompts[1:]))
    shared = sum(map(len, labels)) / len(labels)
    print(
        f"{arguments.dtype}, {len(labels)} labels of {shared:.1f} tokens on average with the end, prompts of {lengths}"
    )
    _table(took)
    for name in ("kept", "trie"):
        print(_apart(name, took["naive"], took[name], names))


def _table(took: dict[str, list[Took]]) -> None:
    print("| way | passes | tokens | seconds | tokens, trie = 1 | seconds, trie = 1 |\n|---|---|---|---|---|---|")
    base = _medians(took["trie"])
    for name, ones in took.items():
        passes, tokens, seconds = _medians(ones)
        ratios = f"{tokens / base[1]:.1f} | {seconds / base[2]:.1f}"
        print(f"| {name} | {passes:.0f} | {tokens:,.0f} | {seconds:.3f} | {ratios} |")


def _medians(ones: Sequence[Took]) -> tuple[float, float, float]:
    columns = zip(*((one.passes, one.tokens, one.seconds) for one in ones), strict=True)
    passes, tokens, seconds = map(statistics.median, columns)
    return passes, tokens, seconds


def _apart(name: str, naives: Sequence[Took], others: Sequence[Took], names: Sequence[str]) -> str:
    """How far the values of a way are from the naive ones."""
    nats = [
        abs(a - b) for one, two in zip(naives, others, strict=True) for a, b in zip(one.totals, two.totals, strict=True)
    ]
    shares = []
    for one, two in zip(naives, others, strict=True):
        first, second = (normalised(dict(zip(names, took.totals, strict=True))) for took in (one, two))
        shares += [abs(first[label] - second[label]) for label in names]
    return (
        f"{name} against naive, over {len(nats)} labels: log-probabilities at most {max(nats):.2g} nats apart "
        f"(median {statistics.median(nats):.2g}), normalised probabilities at most {max(shares):.2g}"
    )


def _prompts(path: Path, count: int, names: Sequence[str], parts: Loaded) -> list[Ids]:
    """The first messages with different first words, so that little of a prompt is that of another."""
    with path.open(encoding="utf-8", newline="") as file:
        texts = {row["text"].split()[0]: row["text"] for row in csv.DictReader(file)}
    listed = "Topics:\n" + "\n".join(names) + "\n\n" if names else ""
    asked = (f"{listed}What is the topic of this message?\n\n{text}" for text in list(texts.values())[:count])
    return [parts.prompter.prompt(one).ids for one in asked]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float16", "float32"])
    parser.add_argument("--prompts", type=int, default=3)
    parser.add_argument("--listed", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
