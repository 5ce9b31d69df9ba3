"""Throughput over blocks, latency, first use, and where time went."""

import numpy as np
import pytest
from metrics_records import arm, slims

from harness.metrics.blocks import interrupted, whole_blocks
from harness.metrics.cold import cold_and_warm
from harness.metrics.columns import Arm
from harness.metrics.latency import distribution, edges, quantile
from harness.metrics.paired_blocks import block_speeds, group_medians, log_rates
from harness.metrics.speed import first_uses, goodput, latencies, split, step_costs, throughput
from harness.metrics.targets import Targets
from harness.request import Cost

ANY = Targets()


def serial(latencies_s: list[float], **changed: object) -> Arm:
    """Requests sent one after another in one block, ten tokens each."""
    sent = np.concatenate([[0.0], np.cumsum(latencies_s)[:-1]]).tolist()
    return arm(slims(len(latencies_s), e2e_s=latencies_s, sent_s=sent, tokens=10, **changed))


def test_the_first_use_of_a_constraint_is_apart_from_warm_use() -> None:
    """BC-39: 43.5 tokens/s over all, 50 warm, one cold request of 3.2 s."""
    found = cold_and_warm([3.2] + [0.2] * 99, [10] * 100, ["one"] * 100)
    assert (found.cold, found.warm, found.cold_s) == (1, 99, 3.2)
    assert found.all_tokens_per_s == pytest.approx(1000 / 23.0)
    assert found.warm_tokens_per_s == pytest.approx(50.0)


def test_another_constraint_for_each_request_leaves_nothing_warm() -> None:
    """BC-39."""
    found = cold_and_warm([0.5] * 100, [10] * 100, range(100))
    assert (found.cold, found.warm, found.warm_tokens_per_s) == (100, 0, None)
    assert found.all_tokens_per_s == pytest.approx(20.0)


def test_records_tell_cold_from_warm_by_their_compile_time() -> None:
    """BC-39."""
    costs = [Cost(compile_s=3.0), *[Cost(compile_s=0.0)] * 99]
    rows = serial([3.2] + [0.2] * 99, cost=costs)
    blocks = whole_blocks(rows, ANY)
    assert throughput(blocks)["tokens_per_s"].value == pytest.approx(1000 / 23.0)
    found = first_uses(rows, blocks)
    assert found["warm_tokens_per_s"].value == pytest.approx(50.0)
    assert (found["compile_s"].value, found["cold"].value) == (3.0, 0.01)


def test_a_server_that_reports_no_compile_time_has_no_warm_throughput() -> None:
    rows = serial([0.2] * 5)
    assert first_uses(rows, whole_blocks(rows, ANY))["warm_tokens_per_s"].value is None


def test_a_block_lasts_from_the_first_sending_to_the_last_completion() -> None:
    rows = arm(slims(3, sent_s=[10.0, 10.5, 11.0], e2e_s=[1.0, 3.5, 0.5], tokens=[3, 4, 5]))
    (block,) = whole_blocks(rows, ANY)
    assert (block.seconds, block.tokens, block.requests) == (pytest.approx(4.0), 12, 3)


def test_a_block_that_spans_sessions_is_in_no_throughput() -> None:
    rows = arm(slims(4, block=[0, 0, 1, 1], session=[0, 1, 1, 1], sent_s=[0.0, 900.0, 1000.0, 1001.0]))
    blocks = whole_blocks(rows, ANY)
    assert [(block.block, block.session) for block in blocks] == [(1, 1)]
    assert interrupted(rows, blocks) == 1


def test_a_request_that_was_sent_again_is_in_no_time_and_its_block_in_no_throughput() -> None:
    """A server that died in the middle of block 0 and was started again; all of block 1 was lost with it."""
    attempts = [1, 2, 1, 1, 3, 2]
    rows = arm(slims(6, block=[0, 0, 2, 2, 1, 1], attempts=attempts, sent_s=[0.0, 60.0, 99.0, 99.0, 60.0, 61.0]))
    blocks = whole_blocks(rows, ANY)
    assert [block.block for block in blocks] == [2]
    assert interrupted(rows, blocks) == 2
    assert latencies(rows)["e2e_s_p50"].n == 3


def test_a_failure_that_was_sent_again_disturbs_its_block_too() -> None:
    rows = arm(slims(2, outcome=["valid", "failed"], attempts=[1, 3], e2e_s=[1.0, None], sent_s=0.0))
    assert whole_blocks(rows, ANY) == ()


def test_failed_requests_are_in_no_throughput() -> None:
    """BC-21."""
    rows = arm(slims(3, outcome=["valid", "failed", "valid"], e2e_s=[1.0, None, 1.0], tokens=[10, 99, 10], sent_s=0.0))
    (block,) = whole_blocks(rows, ANY)
    assert (block.requests, block.tokens, block.seconds) == (2, 20, 1.0)


def test_goodput_counts_answers_in_time_and_correct_goodput_those_valid_and_right() -> None:
    rows = arm(
        slims(5, sent_s=0.0, e2e_s=[1.0, 2.0, 3.0, 1.0, 4.0], outcome=["valid", "invalid", "valid", "valid", "valid"],
              right=[True, True, True, False, True])
    )  # fmt: skip
    targets = Targets(e2e_ms=2500)
    (block,) = whole_blocks(rows, targets)
    assert (block.good, block.correct) == (3, 1)
    found = goodput(rows, (block,), targets)
    assert (found["goodput_per_s"].value, found["correct_goodput_per_s"].value) == (0.75, 0.25)


def test_an_answer_of_one_token_breaks_no_target_on_the_time_per_token() -> None:
    rows = arm(slims(2, tpot_s=[None, 0.5], ttft_s=[0.1, 0.1], sent_s=0.0))
    (block,) = whole_blocks(rows, Targets(ttft_ms=200, tpot_ms=300))
    assert block.good == 1


def test_an_answer_is_in_time_only_within_every_target() -> None:
    rows = arm(slims(4, ttft_s=[0.1, 0.3, 0.1, 0.2], tpot_s=[0.1, 0.1, 0.3, 0.2], sent_s=0.0))
    (block,) = whole_blocks(rows, Targets(ttft_ms=200, tpot_ms=200))
    assert block.good == 2


def test_without_a_target_there_is_no_goodput_but_there_are_right_answers_a_second() -> None:
    rows = arm(slims(4, sent_s=0.0, e2e_s=2.0, right=[True, False, True, True]))
    found = goodput(rows, whole_blocks(rows, ANY), ANY)
    assert "goodput_per_s" not in found
    assert found["correct_goodput_per_s"].value == 1.5


def test_answers_that_cannot_be_judged_are_no_wrong_answers_of_correct_goodput() -> None:
    rows = arm(slims(4, sent_s=0.0, right=[None, True, True, True]))
    assert "correct_goodput_per_s" not in goodput(rows, whole_blocks(rows, ANY), ANY)


def test_one_block_has_a_rate_but_no_interval() -> None:
    found = throughput(whole_blocks(arm(slims(3)), ANY))["tokens_per_s"]
    assert (found.low, found.high, found.n) == (None, None, 1)
    assert found.value == pytest.approx(33 / 1.1)


def test_mask_time_made_in_the_loop_is_not_hidden_and_made_beside_it_is() -> None:
    inside = arm(slims(4, cost=Cost(mask_s=0.4, wait_s=0.4)))
    beside = arm(slims(4, cost=Cost(mask_s=0.4, wait_s=0.1)))
    assert step_costs(inside)["mask_hidden"].value == pytest.approx(0.0)
    assert step_costs(beside)["mask_hidden"].value == pytest.approx(0.75)
    assert step_costs(beside)["mask_s_per_token"].value == pytest.approx(0.4 / 11)


def test_hidden_mask_time_is_weighed_by_the_time_and_not_by_requests() -> None:
    rows = arm(slims(2, cost=[Cost(mask_s=9.0, wait_s=0.0), Cost(mask_s=1.0, wait_s=1.0)]))
    assert step_costs(rows)["mask_hidden"].value == pytest.approx(0.9)


def test_a_deployment_that_sees_no_masks_reports_none() -> None:
    found = step_costs(arm(slims(3)))
    assert {name: found[name].value for name in found} == dict.fromkeys(found)


def test_the_parts_of_a_step_sum_to_the_time_of_a_token() -> None:
    rows = arm(slims(2, sent_s=0.0, e2e_s=2.0, tokens=10, cost=Cost(0.5, 0.3, 0.2, 0.1)))
    found = split(rows, whole_blocks(rows, ANY))
    assert found is not None
    assert found.total_s == pytest.approx(0.1)
    assert (found.forward_s, found.mask_s, found.apply_s) == pytest.approx((0.05, 0.02, 0.01))
    assert found.other_s == pytest.approx(0.02)
    assert found.made_s == pytest.approx(0.03)


def test_a_part_that_is_not_reported_is_within_the_rest() -> None:
    rows = arm(slims(2, sent_s=0.0, e2e_s=2.0, tokens=10, cost=Cost(forward_s=0.5)))
    found = split(rows, whole_blocks(rows, ANY))
    assert found is not None
    assert (found.mask_s, found.apply_s, found.other_s) == (None, None, pytest.approx(0.05))


def test_quantiles_are_numpys_and_have_an_interval_only_where_there_are_enough() -> None:
    times = np.random.default_rng(0).lognormal(0, 0.5, 100)
    block = np.zeros(100, dtype=int)
    middle, last = quantile(times, 0.5, block), quantile(times, 0.99, block)
    assert middle.value == pytest.approx(np.quantile(times, 0.5))
    assert (middle.low or 9) < (middle.value or 0) < (middle.high or 0)
    assert (last.low, last.high) == (None, None)


def test_the_interval_of_a_quantile_holds_the_truth() -> None:
    rng = np.random.default_rng(1)
    for level in (0.5, 0.9):
        held = []
        for _ in range(300):
            found = quantile(rng.random(200), level, np.zeros(200, dtype=int))
            held.append((found.low or 0) <= level <= (found.high or 0))
        assert 0.91 < np.mean(held) < 0.985


def test_requests_that_share_a_blocks_drift_say_less() -> None:
    rng = np.random.default_rng(2)
    block = np.repeat(np.arange(10), 20)
    alone = quantile(rng.random(200), 0.5, block)
    drifting = quantile(rng.random(200) * 0.1 + rng.random(10)[block], 0.5, block)
    assert (drifting.high or 0) - (drifting.low or 0) > 1.5 * ((alone.high or 0) - (alone.low or 0))


def test_latencies_leave_out_what_failed_and_what_has_one_token() -> None:
    rows = arm(slims(4, outcome=["valid", "failed", "valid", "valid"], tpot_s=[0.1, 9.0, None, 0.3], e2e_s=1.0))
    assert latencies(rows)["tpot_s_p50"].value == pytest.approx(0.2)
    assert latencies(rows)["tpot_s_p50"].n == 2


def test_histograms_of_all_arms_have_the_same_edges_and_hold_every_request() -> None:
    one, two = np.array([0.1, 0.2, 0.4]), np.array([0.05, 8.0])
    bars = edges([one, two])
    for times in (one, two):
        found = distribution(times, np.zeros(times.size, dtype=int), bars)
        assert sum(found.counts) == times.size
        assert len(found.edges) == len(found.counts) + 1
        assert found.ecdf[0] == times.min()
        assert found.ecdf[100] == times.max()


def test_blocks_are_paired_only_where_the_same_examples_were_asked() -> None:
    names = [f"e{i}" for i in range(6)]
    fast = arm(slims(6, example=names, block=[0, 0, 1, 1, 2, 2], e2e_s=1.0, sent_s=0.0))
    slow = arm(slims(6, example=names, block=[0, 0, 1, 2, 1, 2], e2e_s=2.0, sent_s=0.0))
    logs = log_rates(block_speeds(fast, whole_blocks(fast, ANY)), block_speeds(slow, whole_blocks(slow, ANY)))
    assert np.exp(logs["tokens_per_s"]) == pytest.approx([2.0])
    assert np.exp(logs["e2e_s_p50"]) == pytest.approx([0.5])


def test_medians_by_group_are_numpys() -> None:
    rng = np.random.default_rng(3)
    group = rng.integers(0, 9, 100)
    values = np.where(rng.random(100) < 0.2, np.nan, rng.random(100))
    assert group_medians(values, group) == pytest.approx([np.nanmedian(values[group == g]) for g in range(9)])
    assert np.isnan(group_medians(np.array([np.nan, np.nan]), np.array([1, 1]))).all()
