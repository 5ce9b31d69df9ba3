"""Tasks as the config writes them."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from harness.constraint import Labels
from harness.errors import ConfigError, ConstraintError, DataError, HarnessError
from harness.task import TaskConfig, resolve

ROOT = Path(__file__).resolve().parent.parent


def _config(**changes: Any) -> TaskConfig:
    plain: dict[str, Any] = yaml.safe_load((ROOT / "configs/task/intents.yaml").read_text(encoding="utf-8"))
    return msgspec.convert(plain | changes, TaskConfig)


@pytest.mark.parametrize("name", ["intents", "extraction", "word_problems"])
def test_the_shipped_tasks_resolve_with_at_least_150_examples(name: str) -> None:
    plain = yaml.safe_load((ROOT / f"configs/task/{name}.yaml").read_text(encoding="utf-8"))
    task = resolve(msgspec.convert(plain, TaskConfig), seed=0)
    assert len(task.rows.rows) >= 150
    assert set(task.constraints) == {row.id for row in task.rows.rows}


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        ({"kind": "labels", "labels": []}, "empty"),
        ({"kind": "labels", "labels": ["", "yes"]}, "empty"),
        ({"kind": "labels", "labels": ["a", "a"]}, "more than once"),
        ({"kind": "labels", "labels": ["yes", " yes", "yes "]}, "more than once"),
        ({"kind": "regex", "pattern": ""}, "empty"),
        ({"kind": "regex", "pattern": "("}, "not a regex"),
        ({"kind": "json_schema", "schema": {"enum": []}}, "unsatisfiable"),
        ({"kind": "json_schema", "schema": {"type": "objekt"}}, "not a schema"),
        ({"kind": "grammar", "ebnf": "root ::= missing"}, "missing"),
        ({"kind": "labels"}, "exactly one source"),
        ({"kind": "labels", "labels": ["a"], "file": "tasks/intents/labels.json"}, "exactly one source"),
        ({"kind": "labels", "file": "no/such.json"}, "no file"),
    ],
)
def test_a_constraint_that_means_nothing_is_refused_before_any_request(constraint: Any, words: str) -> None:
    """BC-10, BC-05."""
    with pytest.raises(HarnessError, match=words):
        resolve(_config(constraint=constraint), seed=0)


def test_the_empty_schema_is_allowed_and_marked_as_no_constraint() -> None:
    """BC-10."""
    from harness.constraint import is_trivial

    task = resolve(_config(constraint={"kind": "json_schema", "schema": {}}, data=_config().data), seed=0)
    assert all(is_trivial(constraint) for constraint in task.constraints.values())


def test_a_right_answer_outside_the_labels_is_refused(tmp_path: Path) -> None:
    """BC-44: labels are matched after stripping, and by nothing looser."""
    (tmp_path / "d.jsonl").write_text('{"text": "x", "label": " neg"}\n{"text": "y", "label": "Neg"}\n')
    data = {"path": str(tmp_path / "d.jsonl"), "gold": "label"}
    constraint = {"kind": "labels", "labels": ["neg", "pos"]}
    with pytest.raises(DataError, match="'Neg' is not a label"):
        resolve(_config(data=data, constraint=constraint), seed=0)


def test_each_example_may_have_its_own_constraint(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"text": "x", "o": ["a", "b"]}\n{"text": "y", "o": ["c"]}\n')
    config = _config(data={"path": str(tmp_path / "d.jsonl")}, constraint={"kind": "labels", "column": "o"})
    assert list(resolve(config, seed=0).constraints.values()) == [Labels(("a", "b")), Labels(("c",))]


def test_a_fault_in_one_examples_constraint_names_the_example(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"id": "q7", "text": "x", "p": "("}\n')
    data = {"path": str(tmp_path / "d.jsonl"), "id": "id"}
    with pytest.raises(ConstraintError, match="example q7"):
        resolve(_config(data=data, constraint={"kind": "regex", "column": "p"}), seed=0)


def test_stop_strings_on_a_constrained_part_are_refused() -> None:
    """BC-18: a stop string could stand inside the wanted answer."""
    sections = [{"kind": "generate", "name": "a", "max_tokens": 4, "constrained": True, "stop": ["###"]}]
    with pytest.raises(ConfigError, match="stop strings"):
        resolve(_config(sections=sections), seed=0)


def test_a_constraint_that_no_part_uses_is_refused() -> None:
    """BC-10: a constrained run with no constraint in the request is a fault."""
    sections = [{"kind": "generate", "name": "a", "max_tokens": 4}]
    with pytest.raises(ConfigError, match="do not go together"):
        resolve(_config(sections=sections), seed=0)


def test_a_template_that_asks_for_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(DataError, match="'txet' is undefined"):
        resolve(_config(prompt={"text": "{{ txet }}"}), seed=0)
