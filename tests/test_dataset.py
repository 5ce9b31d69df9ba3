"""Rows, whatever they come from."""

import json
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.dataset import Data, load
from harness.errors import DataError


def _jsonl(folder: Path, rows: list[dict[str, Any]], name: str = "test.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def _classes(folder: Path, values: list[int | None]) -> str:
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["neg", "pos"])})
    texts = [f"t{i}" for i in range(len(values))]
    datasets.Dataset.from_dict({"text": texts, "label": [0] * len(values)}, features).to_parquet(
        folder / "test.parquet"
    )
    table = pq.read_table(folder / "test.parquet")
    field = table.schema.field("label")
    pq.write_table(table.set_column(1, field, pa.array(values, field.type)), folder / "test.parquet")
    return str(folder)


def test_a_file_a_folder_and_a_hub_layout_give_the_same_rows(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "x", "label": "no"}, {"id": "b", "text": "", "label": "null"}]
    path = _jsonl(tmp_path, rows)
    hub = tmp_path / "hub" / "data"
    hub.mkdir(parents=True)
    _jsonl(hub, rows, "test-00000-of-00001.jsonl")
    found = [load(Data(str(p), gold="label", id="id"), 0) for p in (path, tmp_path, tmp_path / "hub")]
    assert [row.gold for row in found[0].rows] == ["no", "null"]
    assert found[0].digest == found[1].digest == found[2].digest


def test_negative_and_missing_classes_are_unlabelled(tmp_path: Path) -> None:
    """BC-44: -1, None and -100 are no class, least of all the last one."""
    found = load(Data(_classes(tmp_path, [1, -1, 0, None, -100]), gold="label"), 0)
    assert [row.gold for row in found.rows] == ["pos", None, "neg", None, None]


def test_a_split_without_a_single_label_is_refused(tmp_path: Path) -> None:
    """BC-44."""
    with pytest.raises(DataError, match="no row of split 'test' has a value"):
        load(Data(_classes(tmp_path, [-1, -1, -1]), gold="label"), 0)


def test_a_class_out_of_range_names_its_row(tmp_path: Path) -> None:
    """BC-44."""
    with pytest.raises(DataError, match="row 1: label is 2"):
        load(Data(_classes(tmp_path, [0, 2]), gold="label"), 0)


def test_ids_come_from_the_content_where_no_column_is_named(tmp_path: Path) -> None:
    rows = [{"text": "x"}, {"text": "y"}]
    first = load(Data(str(_jsonl(tmp_path, rows, "a.jsonl"))), 0)
    second = load(Data(str(_jsonl(tmp_path, rows[::-1], "b.jsonl"))), 0)
    assert [row.id for row in first.rows] == [row.id for row in second.rows][::-1]
    assert first.digest == second.digest


def test_doubled_ids_are_refused(tmp_path: Path) -> None:
    path = _jsonl(tmp_path, [{"id": "a", "text": "x"}, {"id": "a", "text": "y"}])
    with pytest.raises(DataError, match="the id 'a' stands twice"):
        load(Data(str(path), id="id"), 0)


def test_absent_fields_of_a_json_answer_stay_absent_and_nulls_stay_nulls(tmp_path: Path) -> None:
    golds = [{"name": "q", "parts": [{"n": 1, "parts": [{"n": 2}]}]}, {"name": "r", "note": None}]
    path = _jsonl(tmp_path, [{"id": str(i), "answer": gold} for i, gold in enumerate(golds)])
    assert [row.gold for row in load(Data(str(path), gold="answer", id="id"), 0).rows] == golds


def test_a_column_of_structs_has_its_filled_in_nulls_taken_out_and_says_so(tmp_path: Path) -> None:
    golds = [{"a": "x"}, {"a": "y", "b": "z"}]
    datasets.Dataset.from_list([{"answer": gold} for gold in golds]).to_parquet(tmp_path / "test.parquet")
    found = load(Data(str(tmp_path), gold="answer"), 0)
    assert [row.gold for row in found.rows] == golds
    assert "nulls count as absent" in found.notes[0]


def test_a_limit_draws_the_same_examples_for_the_same_seed(tmp_path: Path) -> None:
    path = str(_jsonl(tmp_path, [{"id": str(i)} for i in range(50)]))
    drawn = [[row.id for row in load(Data(path, id="id", limit=10), seed).rows] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(drawn[0]) == 10


def test_gold_pattern_takes_the_answer_out_of_a_longer_text(tmp_path: Path) -> None:
    path = str(_jsonl(tmp_path, [{"answer": "She has 3 * 4 = 12.\n#### 1,200"}]))
    assert load(Data(path, gold="answer", gold_pattern=r"#### (\S+)"), 0).rows[0].gold == "1,200"
    with pytest.raises(DataError, match="finds no group"):
        load(Data(path, gold="answer", gold_pattern=r"#### nothing (\S+)"), 0)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (Data("no/such/set"), "no/such/set"),
        (Data("tasks/intents/test.jsonl", gold="lable"), "no column 'lable'"),
        (Data("tasks/intents/test.jsonl", id="key"), "no column 'key'"),
        (Data("tasks/intents/README.md"), "README.md"),
        (Data("tasks/intents/tset.jsonl"), "no file 'tasks/intents/tset.jsonl'"),
        (Data("tasks/intents/test.jsonl", where={"label": "nothing"}), "has no rows"),
    ],
)
def test_what_is_missing_is_named(data: Data, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DataError, match=words):
        load(data, 0)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [("rows.jsonl", "", "is empty"), ("rows.csv", "\n", "is empty"), ("rows.jsonl", '{"id": 1', "JSON parse error")],
)
def test_a_file_without_rows_and_one_that_cannot_be_read_are_told_apart(
    name: str, text: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=words):
        load(Data(str(tmp_path / name)), 0)


def test_rows_with_empty_text_are_kept(tmp_path: Path) -> None:
    """BC-44."""
    path = str(_jsonl(tmp_path, [{"text": "", "label": "a"}, {"text": "x", "label": "b"}]))
    assert len(load(Data(path, gold="label"), 0).rows) == 2


@pytest.mark.parametrize(("name", "count"), [("banking77/test.csv", 3080), ("gsm8k/test.jsonl", 1319)])
def test_real_sets_load_where_they_are(name: str, count: int) -> None:
    path = Path(__file__).resolve().parents[2] / "shared" / "data" / name
    if not path.exists():
        pytest.skip(f"the real data set {name} is not beside the project")
    gold = {"banking77/test.csv": "category", "gsm8k/test.jsonl": "answer"}[name]
    assert len(load(Data(str(path), gold=gold), 0).rows) == count
