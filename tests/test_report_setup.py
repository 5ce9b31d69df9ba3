"""What a report says of the set-up, and whether compared runs were asked the same."""

import json
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest
from report_runs import change_records, write_run

from harness.record import Example, Record, read
from harness.report.alike import differences
from harness.report.harvest import Harvest
from harness.report.parquet import RecordTable
from harness.report.setup import read_manifest, set_up, without_secrets
from harness.report.sources import Source, Sources


@pytest.fixture
def pair(tmp_path: Path) -> list[Source]:
    """Two runs that were asked the same."""
    return [Source(write_run(tmp_path / name, examples=12), name) for name in ("one", "two")]


def test_runs_that_were_asked_the_same_differ_in_nothing(pair: list[Source]) -> None:
    assert differences(pair) == ()


def test_other_examples_are_said(pair: list[Source]) -> None:
    write_run(pair[1].folder, examples=20)
    assert differences(pair)[0] == (
        "one and two do not have the same examples: 12 shared of 12 and 20. Only shared ones are paired."
    )


def test_other_prompts_are_said(pair: list[Source]) -> None:
    path = pair[1].folder / "examples.jsonl"
    first, *rest = path.read_bytes().splitlines()
    changed = msgspec.structs.replace(msgspec.json.decode(first, type=Example), prompt_ids=(1, 2))
    path.write_bytes(b"\n".join([msgspec.json.encode(changed), *rest]) + b"\n")
    assert "they differ on 1 of 12 shared examples" in differences(pair)[0]


def test_another_model_and_config_are_said(pair: list[Source]) -> None:
    path = pair[1].folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["deployment"]["fingerprint"] = "0000"
    manifest["config"]["load"]["concurrency"] = 1
    path.write_text(json.dumps(manifest))
    said = " ".join(differences(pair))
    assert "do not have the same weights" in said
    assert "load.concurrency: 8, 1" in said


def test_secrets_in_a_config_are_not_shown() -> None:
    config = {"deployment": {"api_key": "sk-1", "url": "http://x", "max_tokens": 5}, "list": [{"password": "p"}]}
    assert without_secrets(config) == {
        "deployment": {"api_key": "(not shown)", "url": "http://x", "max_tokens": 5},
        "list": [{"password": "(not shown)"}],
    }


def test_a_resumed_run_and_its_rules_are_said(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", examples=4)
    manifest = read_manifest(folder)
    rows = dict(set_up(folder, msgspec.structs.replace(manifest, sessions=manifest.sessions * 2)).rows)
    assert rows["Resumed"].startswith("2 processes")
    assert rows["Note"].startswith("the chat template has no system turn")


def test_the_first_use_of_an_arm_is_said_apart(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", examples=4)
    (folder / "warmup.jsonl").write_bytes((folder / "records.jsonl").read_bytes())
    rows = dict(set_up(folder, read_manifest(folder)).rows)
    assert "for compiling the constraint" in rows["First use: native/llguidance"]


def test_the_parquet_file_holds_every_record_flat(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", "extraction", examples=12)
    with RecordTable(folder / "records.parquet") as table:
        lines = list(Harvest(Sources([Source(folder)]), table.add).lines())
    rows = pq.read_table(folder / "records.parquet").to_pylist()
    records = list(read(folder / "records.jsonl"))
    assert len(rows) == len(lines) == len(records) == 48
    for row, record in zip(rows, records, strict=True):
        assert (row["arm"], row["example"], row["right"], row["mask_s"]) == (
            record.arm, record.example, record.right, record.cost.mask_s
        )  # fmt: skip
        assert (json.loads(row["answer"]) if row["answer"] else None) == record.answer
        assert json.loads(row["gold"]) == record.gold


def test_what_a_request_without_an_answer_lacks_is_null_and_not_0_in_the_parquet_file(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", examples=2, arms=("none",))
    change_records(folder, _never_sent)
    with RecordTable(folder / "records.parquet") as table:
        list(Harvest(Sources([Source(folder)]), table.add).lines())
    rows = pq.read_table(folder / "records.parquet", columns=["sent_s", "tokens", "prompt_tokens"]).to_pylist()
    assert [set(row.values()) for row in rows] == [{None}, {None}]


def _never_sent(record: Record) -> Record:
    return msgspec.structs.replace(record, outcome="unsupported", parts=(), sent_s=0.0, tokens=0, prompt_tokens=0)


def test_a_table_that_was_not_finished_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), RecordTable(tmp_path / "records.parquet"):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", examples=3)
    with (folder / "records.jsonl").open("ab") as file:
        file.write(b'{"arm": "none", "exam')
    assert len(list(Harvest(Sources([Source(folder)])).lines())) == 12


def test_records_are_found_again_at_their_places_in_several_runs(pair: list[Source]) -> None:
    sources = Sources(pair)
    harvest = Harvest(sources)
    arms = [line.arm for line in harvest.lines()]
    assert len(arms) == 96
    for example, seen in harvest.sightings.items():
        records = sources.records(seen.places)
        assert {record.example for record in records} == {example}
        assert sorted(record.arm for record in records) == sorted({*arms})
