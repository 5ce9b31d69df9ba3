"""From the command line to frozen objects."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hydra import compose, initialize_config_dir

from harness import manifest
from harness.config import CONFIGS, Config, decode, plain, targets
from harness.constraint import Labels
from harness.deployment import DeploymentInfo
from harness.errors import ConfigError, HarnessError
from harness.method import AsyncProcessor, Native, Processor, Unconstrained
from harness.metrics.targets import Targets
from harness.task import LabelsSpec, resolve

ROOT = Path(__file__).resolve().parent.parent


def _compose(*overrides: str) -> Config:
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        return decode(plain(compose("config", ["folder=somewhere", *overrides])))


def test_the_default_is_four_arms_on_the_embedded_model() -> None:
    config = _compose()
    assert config.arms == ("none", "native/llguidance", "processor/lm_format_enforcer", "async/lm_format_enforcer")


def test_method_selects_arms() -> None:
    assert [type(m) for m in _compose("method=[none,async]").method.values()] == [Unconstrained, AsyncProcessor]
    assert [type(m) for m in _compose("method=native").method.values()] == [Native]


def test_any_engine_can_be_set_for_any_method() -> None:
    config = _compose("method.native.engine=xgrammar", "method.async.engine=llguidance")
    assert config.arms == ("none", "native/xgrammar", "processor/lm_format_enforcer", "async/llguidance")


@pytest.mark.parametrize("method", ["native", "processor", "async"])
def test_an_engine_that_nobody_knows_is_refused_before_anything_starts(method: str) -> None:
    with pytest.raises(ConfigError, match="'lmfe' is not known"):
        _compose(f"method.{method}.engine=lmfe")


def test_a_call_needs_no_engine() -> None:
    config = _compose("method.processor.call=mine:factory", "method.processor.engine=unused")
    assert "processor/mine:factory" in config.arms


def test_the_sql_experiment_sets_the_task_and_the_parser_that_ships_for_it() -> None:
    config = _compose("experiment=sql")
    assert config.task.name == "sql"
    parser = "harness.masks.sql_select:ENGINE"
    assert config.arms == ("none", "native/llguidance", f"processor/{parser}", f"async/{parser}")


def test_an_own_callable_names_its_arm() -> None:
    config = _compose("method=processor", "method.processor.call=my.module:factory")
    assert config.arms == ("processor/my.module:factory",)
    assert isinstance(config.method["processor"], Processor)


def test_a_second_arm_of_one_method_can_be_added() -> None:
    config = _compose("method=[native]", "+method.other={kind: native, engine: xgrammar}")
    assert config.arms == ("native/llguidance", "native/xgrammar")


def test_labels_on_the_command_line_come_through_as_they_are() -> None:
    """BC-42."""
    written = ["yes, maybe", "a=b", "[O]", "null", "1e3", "true", "it's"]
    quoted = ",".join(f'"{label}"' for label in written)
    config = _compose(f"task.constraint.labels=[{quoted}]", "task.constraint.file=null")
    assert isinstance(config.task.constraint, LabelsSpec)
    assert config.task.constraint.labels == tuple(written)


def test_an_interpolation_in_a_label_is_refused_and_not_resolved_to_something_else() -> None:
    """BC-42."""
    with pytest.raises(ConfigError, match="x"):
        _compose('task.constraint.labels=["${x}"]')


@pytest.mark.parametrize("label", ["null", "1e3", "true", "12"])
def test_a_label_that_is_not_text_is_refused(label: str) -> None:
    """BC-42: never str() of what YAML made of it."""
    with pytest.raises(ConfigError, match=r"task\.constraint\.labels"):
        _compose(f"task.constraint.labels=[{label},yes]", "task.constraint.file=null")


def test_labels_from_a_file_are_checked_the_same_way(tmp_path: Path) -> None:
    """BC-42."""
    (tmp_path / "labels.json").write_text('["no", null]')
    config = _compose(f"task.constraint.file={tmp_path}/labels.json")
    with pytest.raises(ConfigError, match="None is not text"):
        resolve(config.task, 0)
    (tmp_path / "labels.json").write_text('["no", "on", "null"]')
    (tmp_path / "rows.jsonl").write_text('{"text": "x", "label": "null"}\n')
    data = f"task.data={{path: {tmp_path}/rows.jsonl, gold: label}}"
    config = _compose(f"task.constraint.file={tmp_path}/labels.json", "~task.data", f"+{data}")
    assert set(resolve(config.task, 0).constraints.values()) == {Labels(("no", "on", "null"))}


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("+typo=1", "typo"),
        ("+task.typo=1", r"task.*typo"),
        ("block=many", "block"),
        ("block=0", "block=0"),
        ("task.temperature=hot", "task.temperature"),
        ("method.async.workers=two", "workers"),
        ("task.scorer.kind=magic", "task.scorer"),
        ("load.concurrency=1.5", "load.concurrency"),
        ("deployment.dtype=[1]", "deployment.dtype"),
    ],
)
def test_a_wrong_key_or_type_is_an_error_that_names_its_path(override: str, words: str) -> None:
    with pytest.raises(HarnessError, match=words):
        _compose(override)


@pytest.mark.parametrize(
    ("override", "found", "wanted"),
    [
        ("load.concurrency=0", "load.concurrency: 0", "int >= 1"),
        ("deployment.dtype=fp16", "deployment.dtype: Invalid enum value 'fp16'", "bfloat16, float16, float32"),
        ("load.kind=opn", "load.kind: Invalid value 'opn'", "one of closed, open"),
        (
            "task.constraint.kind=regx",
            "task.constraint.kind: Invalid value 'regx'",
            "labels, regex, json_schema, grammar",
        ),
        ("method.async.workers=0", "method.async.workers: 0", "int >= 1"),
        (
            "method.processor.timeout_s=0",
            "method.processor.timeout_s: 0 or method.async.timeout_s: 20.0",
            "float > 0.0",
        ),
        ("task.data.limit=-1", "task.data.limit: -1", "int >= 0"),
        ("task.temperature=-0.5", "task.temperature: -0.5", ">= 0.0"),
        ("task.sections.0.max_tokens=many", "task.sections[0].max_tokens: 'many' (str)", "int"),
    ],
)
def test_a_wrong_value_is_shown_beside_what_was_wanted(override: str, found: str, wanted: str) -> None:
    with pytest.raises(ConfigError) as raised:
        _compose(override)
    assert raised.value.found == found
    assert wanted in raised.value.wanted


def test_a_url_without_its_scheme_is_refused_by_its_key() -> None:
    with pytest.raises(ConfigError, match=r"deployment\.url: 'localhost:30000'"):
        _compose("deployment=sglang", "deployment.url=localhost:30000")


def test_two_arms_with_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="native/llguidance"):
        _compose("+method.again={kind: native}")


@pytest.mark.parametrize("path", sorted((ROOT / "configs" / "experiment").glob("*.yaml")), ids=lambda p: p.stem)
def test_every_experiment_composes_with_every_task(path: Path) -> None:
    for task in ("intents", "extraction", "word_problems"):
        assert _compose(f"experiment={path.stem}", f"task={task}").task.name == task


def test_an_experiment_overrides_the_defaults_of_the_run_itself() -> None:
    assert (_compose().block, _compose("experiment=quick").block) == (16, 8)
    assert _compose("experiment=quick", "block=5").block == 5


def test_goodput_targets_are_milliseconds_above_0() -> None:
    assert _compose("goodput.ttft_ms=200").goodput == Targets(ttft_ms=200.0)
    with pytest.raises(ConfigError, match=r"goodput\.ttft_ms"):
        _compose("goodput.ttft_ms=0")


def test_targets_for_a_report_that_is_made_again_are_read_as_strictly() -> None:
    assert targets(["goodput.ttft_ms=200", "goodput.tpot_ms=null"]) == Targets(ttft_ms=200.0)
    with pytest.raises(ConfigError, match=r"goodput.*itl_ms"):
        targets(["goodput.itl_ms=3"])
    with pytest.raises(ConfigError, match=r"goodput\.tpot_ms"):
        targets(["goodput.tpot_ms=fast"])


def test_other_targets_do_not_make_another_run() -> None:
    def identity(*overrides: str) -> str:
        info = DeploymentInfo("embedded", "m", "m", "f", 9, 9, (2,), "bfloat16", "cpu", {})
        return manifest.identity(msgspec.to_builtins(_compose(*overrides)), info, "d")

    assert identity("goodput.ttft_ms=200") == identity()
    assert identity("seed=1") != identity()


def test_the_config_comes_back_from_its_plain_values() -> None:
    config = _compose()
    again: Any = msgspec.to_builtins(config)
    assert decode(again) == config
