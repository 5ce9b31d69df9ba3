"""The commands that work on runs which are there: where their files go, and what they say at the end."""

from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from report_runs import ARMS, write_run

from harness.__main__ import main
from harness.metrics.summary import Summary
from harness.metrics.targets import Targets


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two runs, and a working folder that is empty but for them."""
    monkeypatch.chdir(tmp_path)
    return [str(write_run(Path(name), examples=20, arms=ARMS[:2])) for name in ("before", "after")]


def test_a_comparison_goes_into_a_folder_of_results_and_its_path_is_said_last(
    runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *runs]) == 0
    said = capsys.readouterr().out
    (folder,) = Path("results/compare").iterdir()
    assert said.splitlines()[-1] == f"report: {(folder / 'comparison.html').resolve()}"
    assert "before:none" in said
    assert sorted(path.name for path in Path().iterdir()) == ["after", "before", "results"]


def test_a_comparison_goes_where_it_is_told(runs: list[str]) -> None:
    assert main(["compare", *runs, "folder=mine", "goodput.ttft_ms=60"]) == 0
    summary = msgspec.json.decode(Path("mine/comparison.json").read_bytes(), type=Summary)
    assert summary.targets == Targets(ttft_ms=60)
    assert not Path("results").exists()


def test_a_report_is_made_again_under_other_targets(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", runs[0], "goodput.ttft_ms=60", "goodput.tpot_ms=50"]) == 0
    assert "TTFT ≤ 60 ms and TPOT ≤ 50 ms" in capsys.readouterr().out
    assert main(["report", runs[0]]) == 0
    assert "goodput" not in capsys.readouterr().out


@pytest.mark.parametrize("override", ["goodput.ttft_ms=-1", "goodput.speed=3", "folder=x"])
def test_what_a_report_cannot_be_told_is_refused(
    runs: list[str], override: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", runs[0], override]) == 2
    assert "to mend" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "words"),
    [("masks", "engine="), ("capacity", "measure:"), ("report", "RUN"), ("compare", "RUN RUN"), ("run", "Config")],
)
def test_each_command_says_what_it_takes(
    command: str, words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [])
    with suppress(SystemExit):  # Hydra's own help ends so
        assert main([command, "--help"]) == 0
    assert words in capsys.readouterr().out


@pytest.mark.parametrize("override", ["engine=xgramar", "samples=-1", "first=0", "limits.cpu_s=0", "engien=[outlines]"])
def test_what_the_mask_benchmark_cannot_be_told_is_refused(override: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["masks", override]) == 2
    said = capsys.readouterr().err
    assert [part for part in (override.partition("=")[0], "wanted", "to mend") if part not in said] == []


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("task=intent", ["Could not find 'task/intent'", "intents"]),
        ("blok=3", ["Could not override 'blok'"]),
        ("method=[none", ["no viable alternative"]),
        ("load.concurrency=0", ["load.concurrency: 0", "int >= 1"]),
    ],
)
def test_what_a_run_cannot_be_told_is_refused_as_any_other_set_up(
    override: str, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [])
    monkeypatch.setenv("HYDRA_FULL_ERROR", "0")
    assert main(["run", override, f"hydra.run.dir={tmp_path}"]) == 2
    said = capsys.readouterr().err
    assert [word for word in (*words, "wanted", "to mend") if word not in said] == []
    assert "Traceback" not in said
