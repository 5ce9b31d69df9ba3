"""The capacity model, where its answer is known, and against the embedded deployment's own forward curve."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from harness.__main__ import main
from harness.capacity.model import Costs, Forward, capacity, forward_of, steps, worker_share
from harness.capacity.sources import mask_times
from harness.capacity.sweep import Point, checked
from harness.errors import ConfigError
from harness.request import Cost
from tests.metrics_records import slims

FREE = Costs(apply_s=0.0, handoff_s=0.0)
FLAT = Forward({1: 0.010})


def _alike(mask_s: float) -> list[np.ndarray]:
    return [np.full(5, mask_s), np.full(9, mask_s)]


def test_masks_in_the_loop_add_up_and_hidden_ones_cost_only_what_exceeds_the_forward_pass() -> None:
    took = steps(np.full((3, 8), 0.001), 0.010, FREE)
    assert took == pytest.approx({"none": 0.010, "native": 0.018, "processor": 0.018, "async": 0.010})
    took = steps(np.full((3, 16), 0.001), 0.010, FREE)
    assert took == pytest.approx({"none": 0.010, "native": 0.026, "processor": 0.026, "async": 0.016})


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


def test_a_forward_curve_goes_straight_between_its_points_and_on_beyond_them() -> None:
    curve = forward_of({1: 10.0, 9: 18.0, 17: 34.0})
    assert [curve.at(batch) for batch in (1, 5, 17, 19)] == pytest.approx([0.010, 0.014, 0.034, 0.038])
    found = capacity("e", _alike(0.001), curve, FREE, (16, 32))
    assert [one.extrapolated for one in found.predictions] == [False, True]


@pytest.mark.parametrize("points", [{}, {0: 5.0}, {1: 0.0}, {1: float("inf")}])
def test_a_curve_that_says_nothing_is_refused(points: dict[int, float]) -> None:
    with pytest.raises(ConfigError, match="forward"):
        forward_of(points)


def test_a_prediction_is_checked_against_what_was_measured() -> None:
    rates = {"none": 100.0, "native": 50.0}
    points = [Point(name, 1, rate, 0.01 if name == "native" else 0.0, 0.0) for name, rate in rates.items()]
    points += [Point("none", 4, 200.0, 0.0, 0.0), Point("native", 4, 80.0, 0.0, 0.0)]
    small, large = checked(points, FREE)
    assert (small.predicted, small.error) == pytest.approx((50.0, 0.0))
    assert (large.predicted, large.error) == pytest.approx((4 / 0.06, 4 / 0.06 / 80 - 1))


def test_the_command_reads_the_mask_times_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = slims(3, arm="async/e", tokens=20, cost=Cost(mask_s=0.02))
    (tmp_path / "records.jsonl").write_text("".join(msgspec.json.encode(one).decode() + "\n" for one in made))
    assert [one.tolist() for one in mask_times(tmp_path)["async/e"]] == [[0.001]] * 3
    assert main(["capacity", f"masks={tmp_path}", "forward={1: 10.0}", "costs.apply_s=0.0", "costs.handoff_s=0.0"]) == 0
    said = capsys.readouterr().out
    assert "Masks take longer than the forward pass from batch 16 on." in said


def test_a_folder_without_times_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no benchmark and no run"):
        mask_times(tmp_path)
