"""The capacity model, where its answer is known, and against the embedded deployment's own steps."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest

from harness.__main__ import main
from harness.capacity.check import checked, hiding, waiting
from harness.capacity.config import curve, decode
from harness.capacity.model import Costs, Forward, Method, capacity, forward_of, steps, worker_share
from harness.capacity.report import verdict
from harness.capacity.run import run
from harness.capacity.sources import mask_times
from harness.capacity.sweep import Measure, Point, Sweep, arms
from harness.capacity.sweep import sweep as measured
from harness.config import composed
from harness.deployment import DeploymentInfo
from harness.deployments.embedded.config import Embedded
from harness.errors import ConfigError, DeploymentError, HarnessError
from harness.request import Cost
from tests.metrics_records import slims

FREE = Costs(apply_s=0.0, seat_s=0.0, ask_s=0.0, handoff_s=0.0)
FLAT = Forward({1: 0.010})
INFO = DeploymentInfo("embedded", "m", "f", "t", 8, 8, (1,), "float32", "cpu", {})


def _alike(mask_s: float) -> list[np.ndarray]:
    return [np.full(5, mask_s), np.full(9, mask_s)]


def _sweep(costs: Costs, forward: Forward, mask_s: float, batches: tuple[int, ...]) -> Sweep:
    """What a deployment that does exactly what the model says would measure."""
    points = [Point("none", batch, (forward.at(batch),)) for batch in batches]
    for batch in batches:
        masks, forward_s = np.full((1, batch), mask_s), forward.at(batch)
        for method in ("native", "processor", "async"):
            step_s = steps(masks, forward_s, costs)[method]
            waited = step_s - forward_s - batch * costs.apply_s
            points.append(Point(method, batch, (step_s,), (mask_s,), (waited,)))
    return Sweep(INFO, tuple(points))


def test_masks_in_the_loop_add_up_and_hidden_ones_cost_only_what_exceeds_the_forward_pass() -> None:
    took = steps(np.full((3, 8), 0.001), 0.010, FREE)
    assert took == pytest.approx({"none": 0.010, "native": 0.018, "processor": 0.018, "async": 0.010})
    took = steps(np.full((3, 16), 0.001), 0.010, FREE)
    assert took == pytest.approx({"none": 0.010, "native": 0.026, "processor": 0.026, "async": 0.016})


def test_what_is_not_hidden_is_paid_whatever_the_masks_take() -> None:
    costs = Costs(apply_s=0.001, seat_s=0.0001, ask_s=0.002, handoff_s=0.003)
    took = steps(np.zeros((1, 4)), 0.010, costs)
    assert took == pytest.approx({"none": 0.010, "native": 0.014, "processor": 0.0194, "async": 0.0164})


def test_methods_that_make_masks_beside_the_model_pay_the_larger_of_the_two() -> None:
    """As native grammars do on a GPU."""
    beside = msgspec.structs.replace(FREE, hidden=("native", "processor", "async"))
    took = steps(np.full((3, 16), 0.001), 0.010, beside)
    assert took == pytest.approx({"none": 0.010, "native": 0.016, "processor": 0.016, "async": 0.016})


def test_one_dear_mask_makes_the_whole_batch_wait() -> None:
    drawn = np.array([[0.000, 0.000], [0.040, 0.000]])
    assert steps(drawn, 0.010, FREE)["async"] == pytest.approx((0.010 + 0.040) / 2)


def test_workers_share_the_rows_of_a_step() -> None:
    drawn = np.array([[1.0, 2.0, 3.0, 4.0, 5.0]])
    assert [worker_share(drawn, n)[0] for n in (1, 2, 5, 9)] == [15.0, 9.0, 5.0, 5.0]


def test_the_bottleneck_is_the_first_batch_whose_masks_outlast_the_forward_pass() -> None:
    found = capacity("e", _alike(0.001), FLAT, FREE)
    assert found.bottleneck == 16
    assert found.loses == {"native": 2, "processor": 2, "async": 16}
    assert capacity("e", _alike(1e-6), FLAT, FREE).bottleneck is None


def test_masks_that_never_vary_leave_no_interval_and_those_that_do_leave_one() -> None:
    same = capacity("e", _alike(0.001), FLAT, FREE, (8,)).predictions[0].tokens_per_s["native"]
    assert same.low == pytest.approx(same.value) == same.high
    varied = [np.array([one]) for one in np.geomspace(1e-5, 1e-2, 30)]
    wide = capacity("e", varied, FLAT, FREE, (8,)).predictions[0].tokens_per_s["native"]
    assert (wide.low or 0.0) < (wide.value or 0.0) < (wide.high or 0.0)


def test_a_mask_that_is_dear_once_in_a_thousand_is_met_at_the_smallest_batch_too() -> None:
    rare = [np.array([0.0] * 999 + [10.0])]
    (found,) = capacity("e", rare, FLAT, FREE, (1,)).predictions
    assert found.tokens_per_s["native"].value == pytest.approx(1 / 0.020, rel=0.3)


def test_a_forward_curve_goes_straight_between_its_points_and_on_beyond_them() -> None:
    curve = forward_of({1: 10.0, 9: 18.0, 17: 34.0})
    assert [curve.at(batch) for batch in (1, 5, 17, 19)] == pytest.approx([0.010, 0.014, 0.034, 0.038])
    found = capacity("e", _alike(0.001), curve, FREE, (16, 32))
    assert [one.extrapolated for one in found.predictions] == [False, True]


@pytest.mark.parametrize("points", [{}, {0: 5.0}, {1: 0.0}, {1: float("inf")}])
def test_a_curve_that_says_nothing_is_refused(points: dict[int, float]) -> None:
    with pytest.raises(ConfigError, match="forward"):
        forward_of(points)


@pytest.mark.parametrize(("name", "text"), [("f.yaml", "1: 8.5\n32: 11\n"), ("f.json", '{"1": 8.5, "32": 11.0}')])
def test_a_forward_curve_is_read_from_a_file(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert curve(str(tmp_path / name)) == curve({1: 8.5, 32: 11.0})


@pytest.mark.parametrize("text", ["- 8.5\n", "1: fast\n", "{1: [8.5\n"])
def test_a_file_that_holds_no_curve_is_refused_with_its_path(tmp_path: Path, text: str) -> None:
    (tmp_path / "f.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"f\.yaml"):
        curve(str(tmp_path / "f.yaml"))
    with pytest.raises(ConfigError, match=r"g\.yaml"):
        curve(str(tmp_path / "g.yaml"))


COSTS = Costs(apply_s=80e-6, seat_s=6e-6, ask_s=170e-6, handoff_s=110e-6)


@pytest.mark.parametrize("mask_s", [100e-6, 4e-3])
@pytest.mark.parametrize("hidden", [("async",), ("native", "processor", "async")])
def test_costs_are_found_again_in_what_a_deployment_that_obeys_the_model_measures(
    mask_s: float, hidden: tuple[Method, ...]
) -> None:
    """Masks that stay hidden, and masks that outlast the forward pass."""
    costs = msgspec.structs.replace(COSTS, hidden=hidden)
    sweep = _sweep(costs, Forward({1: 0.010, 16: 0.020}), mask_s, (1, 2, 4, 8, 16))
    found = waiting(sweep, Costs(apply_s=costs.apply_s, hidden=hidden))
    assert [one.error for one in checked(sweep, found)] == pytest.approx([0.0] * 15, abs=0.01)
    assert hiding(_sweep(costs, FLAT, 1e-4, (1, 2, 4, 8, 16))) == hidden
    if hidden == ("async",):
        assert msgspec.structs.astuple(found)[:4] == pytest.approx((80e-6, 6e-6, 170e-6, 110e-6), rel=1e-3)


def test_a_throughput_that_the_model_does_not_explain_is_an_error_of_the_prediction() -> None:
    sweep = _sweep(COSTS, FLAT, 1e-4, (1, 4))
    slow = [msgspec.structs.replace(p, step_s=(2 * p.step_s[0],)) if p.method == "async" else p for p in sweep.points]
    found = checked(msgspec.structs.replace(sweep, points=tuple(slow)), COSTS)
    assert {one.method: round(one.error, 9) for one in found} == {"native": 0.0, "processor": 0.0, "async": 1.0}
    assert "+100.0% (async, batch 1)" in verdict(found)
    assert "2 of 6 predictions lie outside" in verdict(found)


def test_the_command_reads_the_mask_times_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = slims(3, arm="async/e", tokens=20, cost=Cost(mask_s=0.02))
    (tmp_path / "records.jsonl").write_text("".join(msgspec.json.encode(one).decode() + "\n" for one in made))
    assert [one.tolist() for one in mask_times(tmp_path)["async/e"]] == [[0.001]] * 3
    free = [f"costs.{name}=0.0" for name in ("apply_s", "seat_s", "ask_s", "handoff_s")]
    out = tmp_path / "out"
    assert main(["capacity", f"masks={tmp_path}", "forward={1: 10.0}", f"folder={out}", *free]) == 0
    said = capsys.readouterr().out
    assert "Masks take longer than the forward pass from batch 16 on." in said
    assert said.splitlines()[-1] == f"report: {out / 'capacity.md'}"
    assert json.loads((out / "capacity.json").read_bytes())["capacities"][0]["bottleneck"] == 16


def test_a_folder_without_times_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no benchmark and no run"):
        mask_times(tmp_path)
    bare = slims(3, arm="none", tokens=20, cost=Cost())
    (tmp_path / "records.jsonl").write_text("".join(msgspec.json.encode(one).decode() + "\n" for one in bare))
    with pytest.raises(ConfigError, match="how long masks took"):
        mask_times(tmp_path)


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ({"deployment": {"kind": "sglang"}}, "a server does not say"),
        ({"measure": {"batches": [1, 64]}}, "deployment.max_batch=32"),
        ({"measure": {"tokens": 400}}, "400 tokens"),
        ({"measure": {"batches": [2, 2]}}, "measure.batches"),
        ({"costs": {"apply_s": -1.0}}, "costs"),
        ({"costs": {"hidden": ["none"]}}, "costs.hidden"),
        ({"batches": [0]}, "batches"),
        ({"forwards": {1: 1.0}}, "forwards"),
    ],
)
def test_a_set_up_that_cannot_be_measured_is_refused_before_it_starts(keys: dict[str, object], found: str) -> None:
    with pytest.raises(ConfigError, match=found):
        decode({"deployment": {"kind": "embedded"}, "folder": "f"} | keys)


def test_the_command_measures_what_is_not_given_and_checks_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The default model, as small as it goes: what is measured is not judged here."""
    small = ["measure.batches=[1,2]", "measure.tokens=4", "measure.turns=1", "batches=[1,2,64]"]
    assert main(["capacity", "deployment=embedded", "deployment.threads=1", *small, f"folder={tmp_path}"]) == 0
    assert "Tokens a second, predicted and measured" in capsys.readouterr().out
    found = json.loads((tmp_path / "capacity.json").read_bytes())
    assert {(one["method"], one["batch"]) for one in found["checks"]} == {
        (method, batch) for method in ("native", "processor", "async") for batch in (1, 2)
    }
    assert set(found["forward"]["seconds"]) == {"1", "2"}
    assert found["capacities"][0]["predictions"][2]["extrapolated"]
    assert found["costs"]["apply_s"] > 0
    assert found["sweep"]["info"]["name"] == "embedded"


def test_only_the_forward_curve_is_measured_where_masks_are_given(tmp_path: Path) -> None:
    made = slims(3, arm="async/e", tokens=20, cost=Cost(mask_s=0.02))
    (tmp_path / "records.jsonl").write_text("".join(msgspec.json.encode(one).decode() + "\n" for one in made))
    small = ["measure.batches=[1]", "measure.tokens=4", "measure.turns=1", "batches=[1]", f"folder={tmp_path}"]
    assert main(["capacity", f"masks={tmp_path}", "deployment.threads=1", *small]) == 0
    found = json.loads((tmp_path / "capacity.json").read_bytes())
    assert [point["method"] for point in found["sweep"]["points"]] == ["none"]
    assert found["checks"] == []


def test_sequences_that_never_decode_all_at_once_are_no_measurement() -> None:
    """Prompts come into the batch in pieces, so with two tokens each the first has ended before the last begins."""
    config = Embedded(threads=1, prefill_chunk=1)
    with pytest.raises(DeploymentError, match="never decoded all at once"):
        measured(config, Measure(batches=(3,), tokens=2, turns=1), {"none": arms("reference", 1)["none"]})


def test_what_is_given_is_read_before_anything_is_measured(tmp_path: Path) -> None:
    """No forward curve is given, so one would be measured: here on a model that is not there."""
    given = [f"masks={tmp_path}/none", f"folder={tmp_path}/out", "deployment.model=./no-such-model"]
    with pytest.raises(ConfigError, match="no benchmark and no run"):
        run(decode(composed("capacity", given)))


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    given = [f"folder={tmp_path}/file/out", "deployment.model=./no-such-model"]
    with pytest.raises(HarnessError, match="could not be written"):
        run(decode(composed("capacity", given)))
