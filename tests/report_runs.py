"""Made-up runs for the tests of the report: records of four arms as a real run writes them, with failures, truncated
and unsupported answers, free and constrained sections, traces and costs. Seeded, so that a test sees the same run."""

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from harness.deployment import DeploymentInfo
from harness.manifest import Manifest
from harness.record import Example, Outcome, Part, Record
from harness.request import Completion, Cost, Failure, Timing, Trace

ARMS = ("none", "native/llguidance", "processor/lm_format_enforcer", "async/lm_format_enforcer")
LABELS = ("card arrival", "card lost", "card lost abroad", "carte gelée", "cash withdrawal", "change PIN",
          "exchange rate", "fees", "fees abroad", "limits", "refund", "top up", "verify identity")  # fmt: skip
WORDS = ("I", "my", "card", "lost", "the", "money", "abroad", "please", "help", "when", "will", "it", "arrive", "rate")
FORWARD_S = {"none": 0.0101, "native/llguidance": 0.0102, "processor/lm_format_enforcer": 0.0103}
MASK_S = {"native/llguidance": 15e-6, "processor/lm_format_enforcer": 1.6e-3, "async/lm_format_enforcer": 1.7e-3}
SKILL = {
    "none": 0.55,
    "native/llguidance": 0.68,
    "processor/lm_format_enforcer": 0.69,
    "async/lm_format_enforcer": 0.69,
}


class Vocabulary:
    """Ids for pieces of text, given as they come: what `tokens.json` of a run folder holds."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def id(self, piece: str) -> int:
        return self.ids.setdefault(piece, len(self.ids) + 5)

    def cut(self, text: str) -> list[int]:
        """`text` in pieces of at most four letters, a space at the front of a word."""
        pieces = [text[i : i + 4] for i in range(0, len(text), 4)]
        return [self.id(piece) for piece in pieces]


def write_run(
    folder: Path, task: str = "intents", examples: int = 60, seed: int = 7, arms: tuple[str, ...] = ARMS
) -> Path:
    """Write a run folder with a record for each example and arm, and give its path."""
    folder.mkdir(parents=True, exist_ok=True)
    draw, vocabulary = random.Random(seed), Vocabulary()
    asked = [_example(task, number, draw) for number in range(examples)]
    lines = [
        _record(task, arm, example, number, draw, vocabulary) for number, example in enumerate(asked) for arm in arms
    ]
    _write_lines(folder / "records.jsonl", lines)
    _write_lines(folder / "examples.jsonl", asked)
    (folder / "tokens.json").write_text(json.dumps([None] * 5 + list(vocabulary.ids)), encoding="utf-8")
    (folder / "manifest.json").write_bytes(msgspec.json.encode(manifest(task, examples, seed, arms)))
    return folder


def manifest(task: str, examples: int, seed: int, arms: tuple[str, ...]) -> Manifest:
    """What a run writes about itself."""
    info = DeploymentInfo("embedded", "SmolLM2-135M-Instruct", "smollm2", "9f31c0de77aa1b02", 49152, 8192, (2,),
                          "bfloat16", "cpu", {"threads": 2})  # fmt: skip
    return Manifest(
        identity="5f1d2c3b4a596877", task=task, arms=arms, seed=seed,
        config={"task": {"name": task, "temperature": 0.0}, "load": {"concurrency": 8}},
        deployment=info, data_digest="0123456789abcdef", examples=examples, unlabelled=0,
        notes=("the chat template has no system turn: its text stands at the front of the user turn",),
        versions={"python": "3.11.7", "torch": "2.13.0", "llguidance": "1.9.1"},
        machine={"cores": 2, "memory_gib": 23.5},
        git={"commit": "e5701ef", "changed": False}, sessions=({"started_s": 1.7e9, "command": "run"},),
    )  # fmt: skip


def _write_lines(path: Path, lines: list[Any]) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))


def _example(task: str, number: int, draw: random.Random) -> Example:
    words = " ".join(draw.choice(WORDS) for _ in range(draw.randint(6, 22)))
    prompt = f"<|im_start|>user\nAnswer the message of a customer.\n\n{words}?<|im_end|>\n<|im_start|>assistant\n"
    return Example(f"{task}-{number:05d}", f"{task}-{number:05d}", prompt, tuple(range(40)), _gold(task, draw))


def _gold(task: str, draw: random.Random) -> Any:
    if task == "intents":
        return draw.choice(LABELS)
    if task == "extraction":
        return {"name": draw.choice(WORDS), "age": draw.randint(1, 90), "tags": draw.sample(WORDS, 2)}
    return draw.randint(1, 400)


def _record(task: str, arm: str, example: Example, number: int, draw: random.Random, vocabulary: Vocabulary) -> Record:
    outcome = _outcome(arm, draw)
    right = outcome == "valid" and draw.random() < SKILL[arm] if arm in SKILL else draw.random() < 0.6
    text = _text(task, example, bool(right), outcome, draw)
    parts = _parts(task, arm, example, text, outcome, draw, vocabulary)
    completions = [part.result for part in parts if isinstance(part.result, Completion)]
    confidence = _confidence(bool(right), draw) if task == "intents" and outcome == "valid" else None
    answered = bool(completions)
    tokens = sum(completion.completion_tokens for completion in completions)
    last = completions[-1] if completions else None
    traces = [part.result.trace for part in parts if isinstance(part.result, Completion) and part.section == "answer"]
    return Record(
        arm=arm, example=example.id, cluster=example.cluster, block=number // 16, session=0, outcome=outcome,
        right=right,
        score=_score(task, bool(right), outcome, draw), label_confidence=confidence,
        path_confidence=_product([t.masked_logprob for t in traces if t]) if answered else None,
        raw_confidence=_product([t.raw_logprob for t in traces if t]) if answered else None,
        mass=math.prod(m for t in traces if t for m in t.mass if m is not None) if answered and arm != "none" else None,
        forced=0.25 if answered and arm != "none" else None, tokens=tokens, prompt_tokens=40,
        cached_tokens=32 if last else None,
        sent_s=1.7e9 + number * 0.8 + ARMS.index(arm) * 12.8 if arm in ARMS else 1.7e9,
        ttft_s=completions[0].timing.first_token_s if completions else None,
        e2e_s=sum(c.timing.done_s for c in completions) if completions else None,
        tpot_s=_tpot(completions), cost=_cost(arm, tokens, draw) if completions else Cost(),
        flags=("whitespace_run",) if outcome == "truncated" else (),
        text=text, answer=_answer(task, text, outcome), gold=example.gold, reason=_reason(outcome, text),
        labels=_labels(example.gold, confidence or 0.5) if task == "intents" else None, constraint=None, parts=parts,
    )  # fmt: skip


def _outcome(arm: str, draw: random.Random) -> Outcome:
    weights: dict[Outcome, float] = {"valid": 0.96, "truncated": 0.01, "failed": 0.015, "unsupported": 0.015}
    if arm == "none":
        weights = {"valid": 0.7, "invalid": 0.24, "truncated": 0.05, "failed": 0.01}
    elif arm.startswith("native"):
        weights = {"valid": 0.99, "truncated": 0.01}
    return draw.choices(list(weights), list(weights.values()))[0]


def _text(task: str, example: Example, right: bool, outcome: Outcome, draw: random.Random) -> str:
    if outcome in ("failed", "unsupported"):
        return ""
    if outcome == "invalid":
        return f"The answer is {json.dumps(example.gold, ensure_ascii=False)}, I think. Do you need anything else?"
    said = example.gold if right else _gold(task, draw)
    whole = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return whole[: max(len(whole) // 2, 1)] + "\n\n \n" if outcome == "truncated" else whole


def _answer(task: str, text: str, outcome: Outcome) -> Any:
    if outcome != "valid":
        return None
    return text if task == "intents" else json.loads(text)


def _reason(outcome: Outcome, text: str) -> str:
    reasons = {"invalid": f"{text!r} is not one of the labels", "truncated": "the budget of 64 tokens ended it",
               "failed": "processor: ValueError: shape (49151,), wanted (49152,)",
               "unsupported": "patternProperties is not supported"}  # fmt: skip
    return reasons.get(outcome, "")


def _score(task: str, right: bool, outcome: Outcome, draw: random.Random) -> float:
    if right or task != "extraction" or outcome != "valid":
        return float(right)
    return round(draw.uniform(0.2, 0.9), 2)


def _parts(
    task: str, arm: str, example: Example, text: str, outcome: Outcome, draw: random.Random, vocabulary: Vocabulary
) -> tuple[Part, ...]:
    constrained = arm != "none"
    if outcome == "unsupported":
        return ()
    if outcome == "failed":
        failure = Failure(example.id, "processor", "ValueError: shape (49151,), wanted (49152,)")
        return (Part("answer", constrained, failure),)
    answer = Part("answer", constrained, _completion(arm, constrained, text, outcome, draw, vocabulary))
    if task != "word_problems":
        return (answer,)
    thought = "There are " + " ".join(draw.choice(WORDS) for _ in range(12)) + ". "
    return (Part("reasoning", False, _completion(arm, False, thought, "valid", draw, vocabulary)), answer)


def _completion(
    arm: str, constrained: bool, text: str, outcome: Outcome, draw: random.Random, vocabulary: Vocabulary
) -> Completion:
    ids = vocabulary.cut(text) + ([2] if outcome != "truncated" else [])
    steps = [_step(token, constrained, draw, vocabulary) for token in ids]
    trace = Trace(*(tuple(column) for column in zip(*steps, strict=True)))
    pace = FORWARD_S.get(arm, 0.0105) + (MASK_S.get(arm, 0.0) if arm.startswith("processor") else 0.0)
    first = draw.lognormvariate(math.log(0.06), 0.25)
    times = tuple(first + i * pace * draw.uniform(0.9, 1.3) for i in range(len(ids)))
    timing = Timing(1.7e9, first, times[-1], times)
    finish = "length" if outcome == "truncated" else "stop"
    return Completion("r", text, tuple(ids), finish, timing, 40, len(ids), 32, trace)


def _step(token: int, constrained: bool, draw: random.Random, vocabulary: Vocabulary) -> tuple[Any, ...]:
    """raw, masked, mass, allowed, wanted and wanted_logprob of one token."""
    if not constrained:
        raw = math.log(draw.uniform(0.3, 0.999))
        return raw, raw, 1.0, None, token, raw
    mass = draw.betavariate(6, 0.6)
    if draw.random() < 0.25:
        return math.log(mass), 0.0, mass, 1, token, math.log(mass)
    raw = math.log(max(mass * draw.uniform(0.4, 0.99), 1e-6))
    if mass > 0.5 or draw.random() < 0.5:
        return raw, raw - math.log(mass), mass, draw.randint(2, 900), token, raw
    wanted = vocabulary.id(draw.choice(["Sure", "```", "The", " {\n", "I", "<think>"]))
    return raw, raw - math.log(mass), mass, draw.randint(2, 900), wanted, math.log(1 - mass)


def _product(columns: list[tuple[float | None, ...]]) -> float:
    return math.exp(sum(value for column in columns for value in column if value is not None))


def _confidence(right: bool, draw: random.Random) -> float:
    return 1.0 if draw.random() < 0.05 else draw.betavariate(6, 2.2) if right else draw.betavariate(4, 2.5)


def _labels(gold: Any, confidence: float) -> dict[str, float]:
    rest = (1 - confidence) / (len(LABELS) - 1)
    return {label: confidence if label == gold else rest for label in LABELS}


def _tpot(completions: list[Completion]) -> float | None:
    if not completions or len(completions[-1].token_ids) < 2:
        return None
    timing = completions[-1].timing
    return (timing.done_s - timing.first_token_s) / (len(completions[-1].token_ids) - 1)


def _cost(arm: str, tokens: int, draw: random.Random) -> Cost:
    forward = FORWARD_S.get(arm, 0.0105) * tokens
    if arm == "none":
        return Cost(forward_s=forward, steps=tokens, rows=8.0)
    mask = MASK_S.get(arm, 1e-3) * tokens * draw.uniform(0.8, 1.5)
    wait = mask * draw.uniform(0.02, 0.2) if arm.startswith("async") else mask
    return Cost(forward, mask, wait, 4e-5 * tokens, 0.002, tokens, 8.0)


Change = Callable[[Record], Record]


def change_records(folder: Path, change: Change) -> None:
    """Rewrite every record of a run folder."""
    path = folder / "records.jsonl"
    records = [msgspec.json.decode(line, type=Record) for line in path.read_bytes().splitlines()]
    _write_lines(path, [change(record) for record in records])
