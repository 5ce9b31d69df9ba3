"""Whole runs from the command line, on the real small model."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SMALL = ["task=intents", "task.data.limit=6", "block=3", "load.concurrency=3", "warmup=1"]
PROCESSORS = """
import os, time, torch

def raises(constraint, vocabulary):
    def processor(inputs, logits):
        raise KeyError("no such state")
    return processor

def wrong_shape(constraint, vocabulary):
    return lambda inputs, logits: logits[:7]

def nan(constraint, vocabulary):
    return lambda inputs, logits: logits * float("nan")

def hangs(constraint, vocabulary):
    return lambda inputs, logits: time.sleep(3600)

def exits(constraint, vocabulary):
    return lambda inputs, logits: os._exit(3)

def stops(constraint, vocabulary):
    def processor(inputs, logits):
        if inputs:
            return torch.full_like(logits, -torch.inf).index_fill_(0, torch.tensor(vocabulary.stop_ids), 0.0)
        return logits
    return processor
"""


def _command(folder: Path, *overrides: str) -> list[str]:
    return [sys.executable, "-m", "harness", "run", *SMALL, f"folder={folder}", *overrides]


def _run(folder: Path, *overrides: str, cwd: Path | None = None, **how: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        _command(folder, *overrides), cwd=cwd or folder.parent, capture_output=True, text=True, timeout=200, **how
    )


def _records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "records.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A run of all four arms, from a folder that is not the project's."""
    folder = tmp_path_factory.mktemp("elsewhere") / "run"
    return folder, _run(folder)


def test_a_run_prints_its_table_and_ends_with_the_path_of_its_report(whole: Any) -> None:
    folder, done = whole
    assert done.returncode == 0, done.stderr
    last = done.stdout.strip().splitlines()[-1]
    assert last == f"report: {folder / 'report.html'}"
    for arm in ("none", "native/llguidance", "processor/lm_format_enforcer", "async/lm_format_enforcer"):
        assert arm in done.stdout


def test_every_arm_has_one_record_for_every_example(whole: Any) -> None:
    keys = [(record["arm"], record["example"]) for record in _records(whole[0])]
    assert len(keys) == len(set(keys)) == 4 * 6


def test_greedy_tokens_are_the_same_whatever_the_method_of_one_engine(whole: Any) -> None:
    said: dict[str, dict[str, list[int]]] = {}
    for record in _records(whole[0]):
        ids = [part["result"]["token_ids"] for part in record["parts"]]
        said.setdefault(record["example"], {})[record["arm"]] = ids
    same = [arms["processor/lm_format_enforcer"] == arms["async/lm_format_enforcer"] for arms in said.values()]
    assert all(same)


def test_the_summary_has_a_value_an_interval_and_a_count_for_every_metric(whole: Any) -> None:
    summary = json.loads((whole[0] / "summary.json").read_text(encoding="utf-8"))
    assert {"task", "deployment", "arms", "pairs"} <= set(summary)
    for metrics in summary["arms"].values():
        assert all({"value", "low", "high", "n"} <= set(estimate) for estimate in metrics.values())
    assert summary["arms"]["native/llguidance"]["validity"]["value"] == 1.0


def test_the_confidences_of_a_constrained_label_are_probabilities(whole: Any) -> None:
    for record in _records(whole[0]):
        if record["arm"] != "none":
            assert record["outcome"] == "valid"
            assert sum(record["labels"].values()) == pytest.approx(1.0)
            assert 0.0 <= record["raw_confidence"] <= record["path_confidence"] <= 1.0
            assert record["mass"] == pytest.approx(record["raw_confidence"] / record["path_confidence"], rel=0.02)


def test_the_manifest_says_what_the_run_was(whole: Any) -> None:
    manifest = json.loads((whole[0] / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["config"]["task"]["data"]["limit"] == 6
    assert manifest["deployment"]["fingerprint"]
    assert {"torch", "llguidance", "python"} <= set(manifest["versions"])


def test_a_finished_run_is_not_asked_again(whole: Any) -> None:
    """BC-23: no request, the same numbers, no crash."""
    folder, _ = whole
    before = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["arms"]["none"]["accuracy"]
    records = (folder / "records.jsonl").read_bytes()
    done = _run(folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "records.jsonl").read_bytes() == records
    after = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["arms"]["none"]["accuracy"]
    assert after == before


def test_another_set_up_may_not_go_on_in_the_folder(whole: Any) -> None:
    """BC-23."""
    done = _run(whole[0], "seed=1")
    assert done.returncode == 2
    assert "another set-up (seed was 0, now 1)" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_killed_run_goes_on_with_exactly_what_is_missing(tmp_path: Path) -> None:
    """BC-23: kill -9 in the middle, and half a line at the end."""
    folder = tmp_path / "run"
    process = subprocess.Popen(_command(folder), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    path = folder / "records.jsonl"
    deadline = time.monotonic() + 150
    while time.monotonic() < deadline and not (path.exists() and path.read_bytes().count(b"\n") >= 9):
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with path.open("ab") as file:
        file.write(b'{"arm":"none","exam')
    kept = path.read_bytes().rpartition(b"\n")[0]
    done = _run(folder)
    assert done.returncode == 0, done.stderr
    assert path.read_bytes().startswith(kept)
    keys = [(record["arm"], record["example"]) for record in _records(folder)]
    assert len(keys) == len(set(keys)) == 4 * 6


@pytest.fixture(scope="module")
def misbehaved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """One run in which each arm but two is a processor that does something wrong."""
    home = tmp_path_factory.mktemp("own")
    (home / "mine.py").write_text(PROCESSORS)
    names = ("raises", "wrong_shape", "nan", "hangs", "exits", "stops")
    arms = [f"+method.{name}={{kind: processor, call: 'mine:{name}', timeout_s: 2.0}}" for name in names]
    return home / "run", _run(home / "run", "method=none", *arms, "task.data.limit=2", "load.concurrency=2", "warmup=0")


@pytest.mark.parametrize(
    ("factory", "words"),
    [("raises", "KeyError"), ("wrong_shape", "shape"), ("nan", "NaN"), ("hangs", "2"), ("exits", "exit")],
)
def test_a_processor_that_misbehaves_is_one_failed_record_a_request(factory: str, words: str, misbehaved: Any) -> None:
    folder, done = misbehaved
    assert done.returncode == 3, done.stderr
    mine = [record for record in _records(folder) if record["arm"] == f"processor/mine:{factory}"]
    assert [record["outcome"] for record in mine] == ["failed", "failed"]
    assert all(words in record["reason"] for record in mine), mine[0]["reason"]


def test_the_other_arms_of_such_a_run_are_whole(misbehaved: Any) -> None:
    others = [record for record in _records(misbehaved[0]) if record["arm"] in ("none", "processor/mine:stops")]
    assert len(others) == 4
    assert all(record["outcome"] != "failed" for record in others)


def test_an_own_processor_decides_what_is_said(misbehaved: Any) -> None:
    mine = [record for record in _records(misbehaved[0]) if record["arm"] == "processor/mine:stops"]
    assert all(len(record["parts"][0]["result"]["token_ids"]) <= 2 for record in mine)


def test_a_full_disk_stops_the_run_with_whole_records_and_it_goes_on_later(whole: Any, tmp_path: Path) -> None:
    folder, path = tmp_path / "run", tmp_path / "run" / "records.jsonl"
    shutil.copytree(whole[0], folder)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:20]))
    room = path.stat().st_size + 2000

    done = _run(folder, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)))
    assert done.returncode == 2, done.stderr
    assert "a record could not be written: File too large" in done.stderr
    assert len(_records(folder)) == 20
    assert _run(folder).returncode == 0
    assert len(_records(folder)) == 24


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_or_being_told_to_end_keeps_the_records_and_says_so(tmp_path: Path, how: signal.Signals) -> None:
    folder = tmp_path / "run"
    process = subprocess.Popen(
        _command(folder),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    path = folder / "records.jsonl"
    deadline = time.monotonic() + 150
    while time.monotonic() < deadline and not (path.exists() and path.read_bytes().count(b"\n") >= 3):
        time.sleep(0.05)
    os.killpg(process.pid, how)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "kept" in errors
    assert "Traceback" not in errors
    assert len(_records(folder)) >= 3


def test_a_sweep_ends_with_one_report_over_its_runs(tmp_path: Path) -> None:
    """BC-42: commas and equals signs in labels are no sweep."""
    labels = 'task.constraint.labels=["yes, maybe","no"]'
    (tmp_path / "rows.jsonl").write_text('{"text": "Is it?", "label": "no"}\n{"text": "So?", "label": "yes, maybe"}\n')
    command = [
        *[sys.executable, "-m", "harness", "run", "-m", "method=none,native", labels, "task.constraint.file=null"],
        *[
            f"task.data.path={tmp_path}/rows.jsonl",
            "task.data.id=null",
            "warmup=0",
            f"hydra.sweep.dir={tmp_path}/sweep",
        ],
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().splitlines()[-1] == f"report: {tmp_path / 'sweep' / 'report.html'}"
    manifests = [json.loads(path.read_text()) for path in sorted((tmp_path / "sweep").glob("*/manifest.json"))]
    assert [manifest["config"]["task"]["constraint"]["labels"] for manifest in manifests] == [["yes, maybe", "no"]] * 2


def test_a_refused_point_of_a_sweep_does_not_stop_the_others(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "harness", "run", "-m", "block=0,-1", f"hydra.sweep.dir={tmp_path}/sweep"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 2
    said = [path.read_text(encoding="utf-8") for path in sorted((tmp_path / "sweep").glob("*/refused.txt"))]
    assert [text.split(",")[0] for text in said] == ["block=0", "block=-1"]


def test_the_help_needs_no_heavy_library() -> None:
    code = "import sys, harness.__main__ as m; m._parser().format_help(); print([x for x in sys.modules if x in HEAVY])"
    heavy = 'HEAVY = {"torch", "transformers", "hydra", "datasets", "numpy", "httpx", "msgspec"}\n'
    done = subprocess.run([sys.executable, "-c", heavy + code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"
