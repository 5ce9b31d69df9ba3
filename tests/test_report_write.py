"""From a run folder to its files: whole, small, escaped, the same each time they are made."""

import json
import re
from pathlib import Path

import msgspec
import pytest
from report_runs import ARMS, change_records, write_run

from harness.errors import HarnessError
from harness.metrics.summary import Summary
from harness.metrics.targets import Targets
from harness.record import Record
from harness.report.compare import names, write_comparison
from harness.report.write import terminal_table, write_combined, write_reports

NASTY = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\u2028\u202e" + "w" * 9000
TASKS = ("intents", "extraction", "word_problems")
TAGS = """html head meta link title style body svg defs pattern rect circle line polyline polygon g text header nav main
section div h1 h2 h3 p ul li table thead tbody tr th td span wbr figure figcaption details summary bdi dl dt dd code pre
label select option input footer"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A run of each task with reports made, and one over all of them beside."""
    base = tmp_path_factory.mktemp("runs")
    made = [write_run(base / task, task, 40) for task in TASKS]
    write_combined(made, base / "all")
    return made


def test_a_run_gets_four_files_and_no_drafts(runs: list[Path]) -> None:
    for folder in runs:
        names_ = {path.name for path in folder.iterdir()}
        assert {"summary.json", "records.parquet", "report.md", "report.html"} <= names_
        assert not [name for name in names_ if name.endswith(".tmp")]


def test_the_summary_file_is_the_summary(runs: list[Path]) -> None:
    for folder, task in zip(runs, TASKS, strict=True):
        text = (folder / "summary.json").read_bytes()
        assert msgspec.json.decode(text, type=Summary).task == task
        plain = json.loads(text)
        assert list(plain["arms"]) == list(ARMS)
        assert set(plain["arms"]["none"]["accuracy"]) == {"value", "low", "high", "n"}


def test_reports_made_again_are_the_same(runs: list[Path]) -> None:
    before = {name: (runs[0] / name).read_bytes() for name in ("summary.json", "report.md", "report.html")}
    write_reports(runs[0])
    assert {name: (runs[0] / name).read_bytes() for name in before} == before


def test_a_page_names_no_other_place(runs: list[Path]) -> None:
    for folder in runs:
        page = (folder / "report.html").read_text(encoding="utf-8")
        assert set(re.findall(r'(?:src|href|action)="([^"#]*)', page)) <= {"data:,", ""}
        assert not re.search(r"@import|url\((?!#)", page)
        assert "default-src 'none'" in page


def test_a_comment_fits_a_pull_request_whatever_the_run_is(tmp_path: Path) -> None:
    arms = tuple(f"processor/a_rather_long_package_name.module_{i}:factory" for i in range(10))
    paths = write_reports(write_run(tmp_path / "run", "extraction", 2, arms=arms))
    assert paths.markdown.stat().st_size < 60_000


def test_the_terminal_shows_every_arm_with_its_accuracy(runs: list[Path]) -> None:
    table = terminal_table(msgspec.json.decode((runs[0] / "summary.json").read_bytes(), type=Summary))
    assert all(arm[:20] in table for arm in ARMS)
    assert "accuracy ↑" in table


def test_hostile_text_of_models_data_and_configs_stays_text(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", "intents", 8, arms=ARMS[:2])
    change_records(folder, _hostile)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest |= {"notes": [NASTY], "config": {NASTY: NASTY}, "task": NASTY}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "tokens.json").write_text(json.dumps([NASTY] * 4000))
    page = write_reports(folder).html.read_text(encoding="utf-8")
    body = page[: page.rindex("<script>")]
    tags = {
        piece.lstrip("/").split(">")[0].split()[0].lower() for piece in body.split("<")[1:] if not piece.startswith("!")
    }
    assert tags <= {*TAGS.split()}
    assert page.count("<script") == 1
    assert "\u202e" not in page
    assert "\u2028" not in page


def test_one_page_holds_several_tasks_with_a_section_each(runs: list[Path]) -> None:
    folder = runs[0].parent / "all"
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert [f'id="run-{number}"' in page for number in (1, 2, 3, 4)] == [True, True, True, False]
    assert all(f"{task} on embedded" in page for task in TASKS)
    assert (folder / "report.md").read_text(encoding="utf-8").count("### ") == 3


def test_points_of_a_sweep_over_one_task_are_told_apart(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / f"load.concurrency={n}", "intents", 6, arms=ARMS[:1]) for n in (1, 8)]
    page = write_combined(folders, tmp_path / "all").read_text(encoding="utf-8")
    assert "intents on embedded (load.concurrency=1)" in page
    assert "intents on embedded (load.concurrency=8)" in page


def test_compared_runs_are_paired_and_what_differs_is_said_first(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / name, examples=n, arms=ARMS[:2]) for name, n in (("before", 30), ("after", 40))]
    page = write_comparison(folders, tmp_path / "out").html
    summary = msgspec.json.decode((tmp_path / "out" / "comparison.json").read_bytes(), type=Summary)
    assert [f"{run}:{arm}" for run in ("before", "after") for arm in ARMS[:2]] == list(summary.arms)
    assert "do not have the same examples: 30 shared of 30 and 40" in page.read_text(encoding="utf-8")
    assert "do not have the same examples" in (tmp_path / "out" / "comparison.md").read_text(encoding="utf-8")


def test_runs_are_named_by_the_shortest_ends_of_their_paths(tmp_path: Path) -> None:
    assert names([tmp_path / "a", tmp_path / "b"]) == ["a", "b"]
    assert names([tmp_path / "a" / "x", tmp_path / "b" / "x"]) == ["a/x", "b/x"]
    assert names([tmp_path / "a", tmp_path / "a"]) == ["a 1", "a 2"]


def test_a_run_in_which_everything_failed_still_gets_a_report(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", examples=4, arms=ARMS[:2])
    change_records(folder, _failed)
    page = write_reports(folder).html.read_text(encoding="utf-8")
    assert "deployment: the server died" in page
    assert "0.0% right" not in page


def test_a_page_over_many_records_stays_small_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", "extraction", 300, arms=ARMS[:2])
    paths = write_reports(folder)
    page = paths.html.read_text(encoding="utf-8")
    shown = page.count('<details class="example"')
    assert shown <= 120
    assert re.search(rf"{shown} of the [\d,]+ examples on which arms differ", page)
    assert paths.html.stat().st_size < 5_000_000


def test_a_run_that_was_stopped_says_what_it_lacks(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", examples=10, arms=ARMS[:3])
    path = folder / "records.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines[:18] if b'"arm":"native' not in line))
    said = " ".join(write_reports(folder).summary.notes)
    assert "Of 10 examples there are records of: none 6, native/llguidance 0, processor/lm_format_enforcer 6." in said
    compared = write_comparison([folder, write_run(tmp_path / "whole", examples=10, arms=ARMS[:1])], tmp_path / "out")
    assert "run:native/llguidance 0" in " ".join(compared.summary.notes)
    assert not write_reports(tmp_path / "whole").summary.notes


def test_a_run_without_a_record_says_that_nothing_was_measured(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", examples=2, arms=ARMS[:2])
    (folder / "records.jsonl").write_bytes(b"")
    page = write_reports(folder).html.read_text(encoding="utf-8")
    assert "No request has a record: nothing was measured." in page


def test_goodput_stands_in_every_report_once_a_target_is_named(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", examples=40, arms=ARMS[:2])
    paths = write_reports(folder, Targets(ttft_ms=60, tpot_ms=50))
    said = "TTFT ≤ 60 ms and TPOT ≤ 50 ms"
    assert said in terminal_table(paths.summary)
    assert said in paths.markdown.read_text(encoding="utf-8")
    assert said in paths.html.read_text(encoding="utf-8")
    for metrics in paths.summary.arms.values():
        good, correct, all_ = (metrics[f"{name}_per_s"].value for name in ("goodput", "correct_goodput", "requests"))
        assert 0 < (correct or 0) < (good or 0) < (all_ or 0)
    assert "goodput" not in write_reports(folder).markdown.read_text(encoding="utf-8")


def test_a_run_is_reported_under_the_targets_of_its_config(tmp_path: Path) -> None:
    folder = _with_goodput(write_run(tmp_path / "run", examples=20, arms=ARMS[:2]), 60)
    assert write_reports(folder).summary.targets == Targets(ttft_ms=60)
    assert write_reports(folder, Targets(e2e_ms=900)).summary.targets == Targets(e2e_ms=900)


def test_compared_runs_are_held_to_one_set_of_targets_and_it_is_said_where_they_named_others(tmp_path: Path) -> None:
    plain, strict, lax = (write_run(tmp_path / name, examples=20, arms=ARMS[:1]) for name in ("plain", "strict", "lax"))
    _with_goodput(strict, 60), _with_goodput(lax, 500)
    found = write_comparison([plain, strict, lax], tmp_path / "out").summary
    assert found.targets == Targets(ttft_ms=60)
    assert any("different goodput targets; here all of them are held to TTFT ≤ 60 ms" in note for note in found.notes)
    assert not any("differ in config" in note for note in found.notes)
    assert write_comparison([plain, lax], tmp_path / "out", Targets(tpot_ms=20)).summary.targets == Targets(tpot_ms=20)


@pytest.mark.parametrize("name", ["summary.json", "records.parquet", "report.md", "report.html"])
def test_a_report_that_cannot_be_written_says_what_to_do_and_leaves_no_draft(name: str, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", examples=4, arms=ARMS[:2])
    (folder / name / "in the way").mkdir(parents=True)
    with pytest.raises(HarnessError, match=rf"{name} could not be written: .*to mend: make room"):
        write_reports(folder)
    assert not [path for path in folder.iterdir() if path.name.endswith(".tmp")]


def test_a_comparison_or_a_sweep_into_a_place_that_is_no_folder_says_what_to_do(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / name, examples=4, arms=ARMS[:2]) for name in "ab"]
    (tmp_path / "file").write_text("")
    for write in (write_comparison, write_combined):
        with pytest.raises(HarnessError, match="the folder file could not be written"):
            write(folders, tmp_path / "file")


def _with_goodput(folder: Path, ttft_ms: float) -> Path:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["config"]["goodput"] = {"ttft_ms": ttft_ms, "tpot_ms": None, "e2e_ms": None}
    path.write_text(json.dumps(manifest))
    return folder


def _hostile(record: Record) -> Record:
    return msgspec.structs.replace(record, text=NASTY, reason=NASTY, gold={NASTY: NASTY}, flags=(NASTY,))


def _failed(record: Record) -> Record:
    return msgspec.structs.replace(
        record, outcome="failed", right=None, score=None, reason="deployment: the server died", parts=(), tokens=0,
        label_confidence=None, path_confidence=None, raw_confidence=None, mass=None, forced=None, ttft_s=None,
        e2e_s=None, tpot_s=None,
    )  # fmt: skip
