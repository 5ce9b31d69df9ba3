"""Time and memory of summarising many records: `python -m benchmarks.million_records [records] [arms]`.

Writes a records.jsonl of made-up records, with traces, to a temporary folder, summarises it in a fresh process and
prints seconds and peak memory. Run it for several sizes to see that the cost is linear.
"""

import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from harness.metrics.summarise import summarise
from harness.record import Outcome, Part, Record, read_slim
from harness.request import Completion, Cost, Timing, Trace

BLOCK = 64
TOKENS = 4
LABELS = ("card arrival", "card lost", "exchange rate", "fees", "refund")


def write(path: Path, records: int, arms: int) -> None:
    """Write that many records over the arms, each arm answering the same examples."""
    encoder = msgspec.json.Encoder()
    with path.open("wb") as file:
        for record in made(records, arms):
            file.write(encoder.encode(record) + b"\n")


def made(records: int, arms: int) -> Iterator[Record]:
    """Blocks of examples, each answered by every arm in turn."""
    chance = random.Random(0)
    for start in range(0, records // arms, BLOCK):
        for arm in range(arms):
            for example in range(start, min(start + BLOCK, records // arms)):
                yield _record(chance, arm, example, start // BLOCK)


def _record(chance: random.Random, arm: int, example: int, block: int) -> Record:
    sure = chance.betavariate(5, 1)
    right = chance.random() < 0.9 * sure
    outcome: Outcome = chance.choices(("valid", "invalid", "truncated", "failed"), (95, 3, 1, 1))[0]
    gold, said = LABELS[example % 5], LABELS[(example if right else example + 1) % 5]
    sent_s = 1e9 + block * 4 + arm + 0.001 * (example % BLOCK)
    e2e_s = 0.3 + chance.lognormvariate(-2, 0.3)
    known = None if outcome == "failed" else right
    return Record(
        arm=f"arm {arm}", example=f"example-{example:07d}", cluster=f"example-{example:07d}", block=block, session=0,
        outcome=outcome, right=known, score=None if known is None else float(known),
        label_confidence=sure, path_confidence=sure**0.5, raw_confidence=sure**2, mass=sure, forced=0.25,
        tokens=TOKENS, prompt_tokens=40, cached_tokens=32, sent_s=sent_s, ttft_s=0.1 + 0.1 * chance.random(),
        e2e_s=e2e_s, tpot_s=(e2e_s - 0.15) / (TOKENS - 1),
        cost=Cost(0.08, 0.004, 0.001, 0.0005, 0.05 if example == 0 else 0.0, TOKENS, 8.0),
        text=said, answer=said, gold=gold, reason="", constraint=None,
        labels={label: sure if label == said else (1 - sure) / 4 for label in LABELS},
        parts=(Part("answer", True, _completion(chance, sent_s, e2e_s)),),
    )  # fmt: skip


def _completion(chance: random.Random, sent_s: float, e2e_s: float) -> Completion:
    ids = tuple(chance.randrange(49_000) for _ in range(TOKENS))
    logprobs = tuple(-chance.expovariate(3) for _ in ids)
    trace = Trace(logprobs, logprobs, tuple(0.5 + 0.5 * chance.random() for _ in ids), (5, 2, 1, 1), ids, logprobs)
    times = tuple(e2e_s * (0.5 + 0.5 * place / TOKENS) for place in range(1, TOKENS + 1))
    timing = Timing(sent_s, times[0], e2e_s, times)
    return Completion("r", "text", ids, "stop", timing, 40, TOKENS, 32, trace)


def measure(path: Path) -> None:
    """Summarise and print what it took; the summary is encoded too, as a report needs it."""
    started = time.perf_counter()
    with path.open("rb") as file:
        summary = summarise(read_slim(path), "made up", "none", 0, lines=((str, line) for line in file), greedy=True)
    size = len(msgspec.json.encode(summary))
    seconds = time.perf_counter() - started
    cpu = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    records = sum(counts.n for counts in summary.counts.values())
    print(
        f"{records:,} records: {seconds:.1f} s ({cpu:.1f} s of processor), peak {peak:.2f} GiB, summary {size:,} bytes"
    )


def main() -> None:
    if len(sys.argv) > 2 and sys.argv[1] == "measure":
        measure(Path(sys.argv[2]))
        return
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    arms = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.jsonl"
        write(path, records, arms)
        print(f"{path.stat().st_size / 2**20:,.0f} MiB of records")
        subprocess.run([sys.executable, "-m", "benchmarks.million_records", "measure", str(path)], check=True)


if __name__ == "__main__":
    main()
