"""A whole run, from the command line, on a server that it starts."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
RUN = [
    "run",
    "task=intents",
    "task.data.limit=12",
    "block=4",
    "load.concurrency=2",
    "warmup=1",
    "deployment=sglang_cpu",
]


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def test_a_server_that_is_killed_in_a_run_costs_no_record_and_no_wrong_time(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "harness", *RUN, "method=[none,processor]", f"folder={folder}"]
    run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while run.poll() is None and len(lines(folder / "records.jsonl")) < 5:
        time.sleep(0.1)
    family = psutil.Process(run.pid).children(recursive=True)
    next(process for process in family if "scheduler" in " ".join(process.cmdline())).send_signal(signal.SIGKILL)
    said, _ = run.communicate(timeout=400)

    assert run.returncode == 0, said
    records = lines(folder / "records.jsonl")
    assert len({(record["arm"], record["example"]) for record in records}) == len(records) == 24
    lost = {(record["arm"], record["block"]) for record in records if record["attempts"] > 1}
    assert lost, "nothing was under way when the server died"
    assert len(lines(folder / "warmup.jsonl")) == 4, "both arms are warmed up anew on the new server"
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    timed = {(arm, block["block"]) for arm, blocks in summary["blocks"].items() for block in blocks}
    assert not lost & timed
    assert any("sent more than once" in note for note in summary["notes"])
    assert not [p for p in family if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
