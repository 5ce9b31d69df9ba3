"""Tests and intervals of differences, and of shares."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, ttest_1samp

from harness.metrics.intervals import bounded, bounded_mean, effective_n, mean_variance, mid_p, share
from harness.metrics.judged import Floats
from harness.metrics.ratios import ratio
from harness.metrics.statistics import (
    bootstrap_p,
    holm,
    log_ratios,
    mcnemar,
    paired_losses,
    paired_means,
    paired_outcomes,
)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_exact_binomial_test(one: int, other: int) -> None:
    expected = binomtest(one, one + other, 0.5).pvalue if one + other else 1.0
    assert mcnemar(one, other) == pytest.approx(expected)


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_is_what_stepping_down_by_hand_gives(p_values: list[float]) -> None:
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    expected, largest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, p_values[place] * (len(p_values) - rank)))
        expected[place] = largest
    assert holm(p_values) == pytest.approx(expected)


def test_holm_of_a_known_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))


@settings(deadline=None)
@given(st.integers(1, 300), st.data())
def test_the_ends_of_a_share_leave_mid_p_tails(n: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, n))
    low, high = mid_p(count / n, n)
    if count > 0:
        assert binom.sf(count, n, low) + binom.pmf(count, n, low) / 2 == pytest.approx(0.025, abs=1e-6)
    if count < n:
        assert binom.cdf(count - 1, n, high) + binom.pmf(count, n, high) / 2 == pytest.approx(0.025, abs=1e-6)
    assert 0 <= low <= count / n <= high <= 1


@pytest.mark.parametrize("n", [20, 50, 150])
def test_the_interval_of_a_share_holds_the_truth_as_often_as_it_says(n: int) -> None:
    """Exactly, over all outcomes and true shares: 95% on average, never below 91%, also next to 0 and 1."""
    ends = np.array([mid_p(count / n, n) for count in range(n + 1)])
    truths = np.linspace(0.001, 0.999, 999)
    held = (ends[:, :1] <= truths) & (truths <= ends[:, 1:])
    coverage = (held * binom.pmf(np.arange(n + 1)[:, None], n, truths)).sum(axis=0)
    assert 0.94 < coverage.mean() < 0.97
    assert coverage.min() > 0.91


def test_examples_in_clusters_count_as_fewer() -> None:
    hits = np.array([1.0, 0.0] * 50)
    together = share(np.repeat(hits, 4), np.repeat(np.arange(100), 4))
    assert (together.low, together.high) == pytest.approx((share(hits).low, share(hits).high), abs=0.005)
    assert together.n == 400


def test_a_share_of_1_over_clusters_is_as_sure_as_the_clusters_are_many() -> None:
    assert share(np.ones(400), np.repeat(np.arange(20), 20)).low == pytest.approx(mid_p(1.0, 20)[0])


def test_a_mean_has_the_standard_error_of_its_values() -> None:
    values = np.random.default_rng(1).random(400)
    assert mean_variance(values) == pytest.approx(values.var(ddof=1) / 400)
    found = bounded_mean(values)
    assert found.value == pytest.approx(values.mean())
    assert (found.high or 0) - (found.low or 0) == pytest.approx(
        2 * 1.966 * np.sqrt(values.var(ddof=1) / 400), rel=0.02
    )


def test_a_mean_of_values_in_other_bounds_moves_with_them() -> None:
    values = np.random.default_rng(2).random(50)
    unit, wide = bounded_mean(values), bounded_mean(values * 2 - 1, None, -1.0, 1.0)
    assert (wide.value, wide.low, wide.high) == pytest.approx(
        tuple(2 * (end or 0) - 1 for end in (unit.value, unit.low, unit.high))
    )


def test_values_that_are_all_the_same_are_not_known_exactly() -> None:
    found = bounded_mean(np.full(40, 0.5))
    assert (found.low or 1) < 0.49
    assert (found.high or 0) > 0.51


@given(st.floats(0, 1), st.floats(0, 0.3), st.integers(1, 500))
def test_an_interval_stays_within_its_bounds_and_holds_its_value(value: float, variance: float, groups: int) -> None:
    found = bounded(value, variance, groups, groups)
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= value <= found.high <= 1
    assert effective_n(value, variance, groups) >= 1


def test_the_interval_of_a_paired_difference_is_bonett_and_prices() -> None:
    first = np.array([1.0] * 12 + [0.0] * 5 + [1.0] * 60 + [0.0] * 23)
    second = np.array([0.0] * 12 + [1.0] * 5 + [1.0] * 60 + [0.0] * 23)
    found = paired_outcomes(first, second, None, seed=0)
    ours, theirs = 13 / 102, 6 / 102
    half = 1.959964 * np.sqrt((ours + theirs - (ours - theirs) ** 2) / 102)
    assert (found.low, found.high) == pytest.approx((ours - theirs - half, ours - theirs + half), abs=1e-6)
    assert (found.value, found.p, found.n) == pytest.approx((0.07, mcnemar(12, 5), 100))


def test_arms_that_never_differ_are_not_proven_equal() -> None:
    same = np.ones(100)
    found = paired_outcomes(same, same, None, seed=0)
    assert (found.value, found.p) == (0.0, 1.0)
    assert (found.low or 0) < -0.02
    assert (found.high or 0) > 0.02
    assert found.mdd == pytest.approx(0.06)


def test_fewer_than_six_examples_could_show_no_difference() -> None:
    found = paired_outcomes(np.ones(5), np.zeros(5), None, seed=0)
    assert (found.p, found.mdd) == (0.0625, None)


def test_the_smallest_difference_that_could_show_shows_in_four_of_five_runs() -> None:
    rng = np.random.default_rng(3)
    n, disagree = 300, 0.2
    shown = []
    planned = paired_outcomes(*_arms(rng, n, disagree, 0.0), None, seed=0).mdd
    assert planned is not None
    for _ in range(400):
        shown.append((paired_outcomes(*_arms(rng, n, disagree, planned), None, seed=0).p or 1) < 0.05)
    assert 0.7 < np.mean(shown) < 0.9


def _arms(rng: np.random.Generator, n: int, disagree: float, better: float) -> tuple[Floats, Floats]:
    """Two arms that disagree on a share of examples, the first right on `better` more of them."""
    first = rng.choice([1.0, -1.0, 0.0], n, p=[(disagree + better) / 2, (disagree - better) / 2, 1 - disagree])
    return np.where(first > 0, 1.0, 0.0), np.where(first < 0, 1.0, 0.0)


@pytest.mark.parametrize("shift", [0.0, 0.02, 0.05])
def test_the_bootstrap_of_independent_means_agrees_with_the_t_test(shift: float) -> None:
    difference = np.random.default_rng(4).normal(shift, 0.2, 200).clip(-1, 1)
    expected = ttest_1samp(difference, 0).pvalue
    assert bootstrap_p(difference, None, seed=1) == pytest.approx(expected, abs=0.03)


def test_the_bootstrap_with_many_clusters_goes_over_into_the_t_test() -> None:
    difference = np.random.default_rng(4).normal(0.01, 0.2, 2000).clip(-1, 1)
    expected = ttest_1samp(difference, 0).pvalue
    assert bootstrap_p(difference, None, seed=1) == pytest.approx(expected, rel=0.01)


def test_repeating_examples_in_clusters_makes_no_difference_surer() -> None:
    first, second = _arms(np.random.default_rng(5), 80, 0.3, 0.15)
    once = paired_means(first - second, None, seed=0)
    repeated = paired_outcomes(*(np.repeat(arm, 5) for arm in (first, second)), np.repeat(np.arange(80), 5), seed=0)
    assert repeated.p == pytest.approx(once.p, abs=0.01)
    assert (repeated.high or 0) - (repeated.low or 0) == pytest.approx((once.high or 0) - (once.low or 0), rel=0.1)


def test_three_examples_that_all_differ_are_no_proof() -> None:
    assert bootstrap_p(np.full(3, 0.5), None, seed=0) == 0.25


def test_false_findings_are_as_rare_as_they_should_be() -> None:
    rng = np.random.default_rng(6)
    scores = [bootstrap_p(rng.choice([-0.5, 0, 0, 0.5], 60), None, seed=0) < 0.05 for _ in range(300)]
    outcomes = [(paired_outcomes(*_arms(rng, 60, 0.3, 0), None, seed=0).p or 1) < 0.05 for _ in range(300)]
    assert np.mean(scores) < 0.09
    assert np.mean(outcomes) < 0.07


def test_one_cluster_cannot_be_tested() -> None:
    found = paired_means(np.array([0.1, 0.3]), np.array([0, 0]), seed=0)
    assert (found.value, found.low, found.p) == (pytest.approx(0.2), None, None)


def test_right_answers_alone_do_not_show_that_the_surer_arm_has_the_lower_brier_score() -> None:
    """Were one in forty wrong, the arm that says 0.999 would be no better than the one that says 0.95."""
    seen, unseen = np.full(30, 0.001**2 - 0.05**2), np.full(30, 0.999**2 - 0.95**2)
    assert (paired_means(seen, None, 0).p or 1) < 0.001
    found = paired_losses(seen, unseen, None, 0)
    assert (found.p or 0) > 0.05
    assert (found.low or 0) < seen[0] < 0 < (found.high or 0)


def test_where_both_outcomes_are_common_what_was_not_seen_changes_little() -> None:
    rng = np.random.default_rng(3)
    wrong = rng.random(400) < 0.3
    gain, loss = 0.4**2 - 0.1**2, 0.9**2 - 0.6**2
    seen, unseen = np.where(wrong, loss, -gain), np.where(wrong, -gain, loss)
    plain, found = paired_means(seen, None, 0), paired_losses(seen, unseen, None, 0)
    assert found.value == plain.value
    assert (found.high or 0) - (found.low or 0) == pytest.approx((plain.high or 0) - (plain.low or 0), rel=0.03)
    assert (found.p or 0) >= (plain.p or 1)


def test_arms_that_give_the_same_confidences_do_not_differ() -> None:
    found = paired_losses(np.zeros(40), np.zeros(40), None, 0)
    assert (found.value, found.p) == (0.0, 1.0)


def test_log_ratios_of_blocks_are_a_t_test_told_as_ratios() -> None:
    logs = np.log([1.1, 1.2, 1.05, 1.15])
    found = log_ratios(logs)
    expected = ttest_1samp(logs, 0)
    low, high = expected.confidence_interval(0.95)
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.value, found.low, found.high) == pytest.approx((np.exp(logs.mean()), np.exp(low), np.exp(high)))
    assert found.mdd is None


def test_what_would_have_shown_is_said_of_six_blocks_and_not_of_five() -> None:
    logs = np.log([1.1, 1.2, 1.05, 1.15, 1.0, 1.1])
    assert (log_ratios(logs).mdd or 0) > 1
    assert log_ratios(logs[:5]).mdd is None


def test_one_block_has_a_ratio_but_no_interval() -> None:
    found = log_ratios(np.log(np.array([2.0])))
    assert (found.value, found.low, found.p, found.n) == (pytest.approx(2.0), None, None, 1)


def test_a_rate_weighs_blocks_by_their_seconds() -> None:
    found = ratio(np.array([100.0, 10.0, 10.0]), np.array([10.0, 10.0, 20.0]))
    assert found.value == pytest.approx(3.0)
    assert (found.low or 0) > 0


def test_two_blocks_have_a_rate_but_no_interval() -> None:
    found = ratio(np.array([100.0, 10.0]), np.array([10.0, 10.0]))
    assert (found.value, found.low, found.high) == (pytest.approx(5.5), None, None)


def test_the_interval_of_a_rate_holds_the_truth() -> None:
    rng = np.random.default_rng(7)
    held = []
    for _ in range(400):
        seconds = rng.uniform(0.5, 2, 8)
        found = ratio(20 * seconds * rng.lognormal(0, 0.2, 8) / np.exp(0.02), seconds)
        held.append((found.low or 0) <= 20 <= (found.high or 0))
    assert 0.91 < np.mean(held) < 0.985


def test_differences_do_not_depend_on_the_order_of_examples() -> None:
    first, second = _arms(np.random.default_rng(8), 40, 0.4, 0.1)
    for order in itertools.islice(itertools.permutations(range(40)), 3):
        shuffled = list(order)
        again = paired_outcomes(first[shuffled], second[shuffled], None, seed=0)
        assert again == paired_outcomes(first, second, None, seed=0)


def test_speeds_of_two_blocks_are_not_tested_however_well_they_agree() -> None:
    tested = log_ratios(np.log(np.array([1.04, 1.0401])))
    assert tested.value == pytest.approx(1.04, abs=1e-3)
    assert (tested.low, tested.high, tested.p, tested.mdd) == (None, None, None, None)
