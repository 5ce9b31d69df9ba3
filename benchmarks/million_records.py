"""Time and memory of the reports of many records: `python -m benchmarks.million_records [records] [arms]`.

Writes a run folder of made-up records, with traces, to a temporary place, and prints seconds and peak memory of the
metrics alone, and of all reports (metrics, pages, Parquet), each in a fresh process. Run it for several sizes to see
that the cost is linear.
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

from harness import manifest
from harness.deployment import DeploymentInfo
from harness.folder import EXAMPLES, MANIFEST, RECORDS
from harness.manifest import Manifest
from harness.metrics.summarise import summarise
from harness.record import Example, Outcome, Part, Record, read_slim
from harness.report.write import write_reports
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


def write_folder(folder: Path, records: int, arms: int) -> None:
    """Everything that reports are made of."""
    write(folder / RECORDS, records, arms)
    asked = (
        Example(f"example-{n:07d}", f"example-{n:07d}", "Why?", (5, 6), LABELS[n % 5]) for n in range(records // arms)
    )
    with (folder / EXAMPLES).open("wb") as file:
        file.writelines(msgspec.json.encode(one) + b"\n" for one in asked)
    info = DeploymentInfo("none", "made up", "made up", "none", 49_152, 2048, (2,), "none", "none", {})
    names = tuple(f"arm {arm}" for arm in range(arms))
    made_up = Manifest("none", "made up", names, 0, {"task": {"temperature": 0.0}}, info, "none", records // arms, 0,
                       (), {}, {}, {}, ({"started_s": 1e9, "command": "none"},))  # fmt: skip
    manifest.write(folder / MANIFEST, made_up)


def metrics(folder: Path) -> int:
    """The summary alone, encoded as a report needs it; how many records it is of."""
    path = folder / RECORDS
    with path.open("rb") as file:
        summary = summarise(read_slim(path), "made up", "none", 0, lines=((str, line) for line in file), greedy=True)
    msgspec.json.encode(summary)
    return sum(counts.n for counts in summary.counts.values())


def reports(folder: Path) -> int:
    """All reports; how many records they are of."""
    return sum(counts.n for counts in write_reports(folder).summary.counts.values())


def measure(what: str, folder: Path) -> None:
    """Do it, and print what it took."""
    started = time.perf_counter()
    records = {"metrics": metrics, "reports": reports}[what](folder)
    seconds = time.perf_counter() - started
    cpu = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{what} of {records:,} records: {seconds:.1f} s ({cpu:.1f} s of processor), peak {peak:.2f} GiB", flush=True)


def main() -> None:
    if len(sys.argv) > 3 and sys.argv[1] == "measure":
        measure(sys.argv[2], Path(sys.argv[3]))
        return
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    arms = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_folder(folder, records, arms)
        print(f"{(folder / RECORDS).stat().st_size / 2**20:,.0f} MiB of records")
        for what in ("metrics", "reports"):
            command = [sys.executable, "-m", "benchmarks.million_records", "measure", what, name]
            subprocess.run(command, check=True)
        print(f"report.html: {(folder / 'report.html').stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
