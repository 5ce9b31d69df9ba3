"""Calibration metrics against their definitions, against scikit-learn, and at their edges."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from harness.metrics.binning import bin_of, mass_edges, width_edges
from harness.metrics.brier import reliability as brier_reliability
from harness.metrics.brier import resolution, squared_errors
from harness.metrics.calibration import NAMES, calibration
from harness.metrics.classwise import classwise, classwise_ece
from harness.metrics.draws import FEWEST
from harness.metrics.ece import ece, ece_debiased, folded_mean
from harness.metrics.judged import Floats, Judged, judged
from harness.metrics.likelihood import FLOOR, WORST, losses
from harness.metrics.ranking import augrc, aurc, auroc, by_level
from harness.metrics.reliability import bins, reliability
from harness.metrics.smooth_ece import smooth_ece

CONFIDENCE = st.one_of(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]), st.floats(0, 1))
ANSWERS = st.lists(st.tuples(CONFIDENCE, st.booleans()), min_size=1, max_size=60)


def given_answers(pairs: list[tuple[float, bool]]) -> Judged:
    return judged(np.array([c for c, _ in pairs]), [r for _, r in pairs])


def made(n: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Confidences and outcomes of a model that is too sure."""
    rng = np.random.default_rng(seed)
    confidence = rng.beta(4, 1.5, n)
    return confidence, (rng.random(n) < confidence**1.5).astype(float)


@pytest.mark.parametrize(
    ("confidence", "right", "count", "expected"),
    [
        ([0.92, 1.0, 1.0], [1, 0, 1], 10, 0.306666667),
        ([1.0, 1.0, 1.0], [0, 0, 0], 10, 1.0),
        ([0.0, 0.0, 1.0], [1, 0, 1], 4, 0.333333333),
        ([1.0, 1.0], [1, 1], 15, 0.0),
    ],
)
def test_ece_has_a_bin_for_confidence_0_and_1(
    confidence: list[float], right: list[int], count: int, expected: float
) -> None:
    """BC-40."""
    assert ece(judged(confidence, right), width_edges(count)).value() == pytest.approx(expected, abs=1e-6)


def test_equal_confidences_stay_in_one_bin_of_equal_mass() -> None:
    """BC-40."""
    answers = judged([0.7, 0.7, 0.7, 0.7], [0, 0, 0, 1])
    assert ece(answers, mass_edges(answers.confidence, 4)).value() == pytest.approx(0.45, abs=1e-6)


def test_a_confidence_a_float32_sum_above_1_counts_as_1() -> None:
    """BC-40."""
    answers = judged([1.0000001, 0.5], [1, 0])
    assert answers.confidence.tolist() == [0.5, 1.0]


@pytest.mark.parametrize("wrong", [1.001, -0.01, -1.3])
def test_what_is_no_probability_is_refused(wrong: float) -> None:
    """BC-40."""
    with pytest.raises(ValueError, match="probability"):
        judged([0.5, wrong], [1, 0])


def test_answers_without_confidence_are_left_out_and_counted() -> None:
    """BC-40."""
    answers = judged([None, 0.9, float("nan")], [1, 1, 0])
    assert (answers.n, answers.without) == (1, 2)
    assert ece(answers, width_edges()).value() == pytest.approx(0.1)


def test_no_answers_give_no_value_and_no_nan() -> None:
    """BC-40."""
    found = calibration(judged([], []), seed=0)
    assert tuple(found) == NAMES
    assert {(estimate.value, estimate.low, estimate.high, estimate.n) for estimate in found.values()} == {
        (None, None, None, 0)
    }


def test_no_row_falls_out_of_bins_of_equal_mass() -> None:
    """BC-40: 830 rows in bins of 100."""
    answers = judged(*made(830))
    for edges in (mass_edges(answers.confidence, 8), width_edges(8)):
        assert sum(one.n for one in bins(answers, edges)) == 830


@settings(deadline=None)
@given(ANSWERS, st.integers(1, 20))
def test_bins_hold_every_answer_once_and_ece_is_a_share(pairs: list[tuple[float, bool]], count: int) -> None:
    """BC-40."""
    answers = given_answers(pairs)
    for edges in (mass_edges(answers.confidence, count), width_edges(count)):
        assert sum(one.n for one in bins(answers, edges)) == len(pairs)
        assert -1e-12 <= ece(answers, edges).value() <= 1 + 1e-12
        assert 0 <= ece_debiased(answers, edges) <= 1


@settings(deadline=None)
@given(ANSWERS, st.integers(1, 20))
def test_ece_is_what_a_plain_loop_over_bins_gives(pairs: list[tuple[float, bool]], count: int) -> None:
    answers = given_answers(pairs)
    edges = mass_edges(answers.confidence, count)
    total = 0.0
    for left, right in itertools.pairwise(edges):
        inside = [(c, r) for c, r in pairs if left < c <= right or (c == 0 and left == 0)]
        if inside:
            total += abs(sum(r for _, r in inside) - sum(c for c, _ in inside)) / len(pairs)
    assert ece(answers, edges).value() == pytest.approx(total, abs=1e-9)


def test_an_empty_bin_is_missing_and_not_0() -> None:
    """BC-40."""
    empty, full = bins(judged([0.9, 0.8], [1, 0]), width_edges(2))
    assert (empty.n, empty.accuracy, empty.confidence, empty.low) == (0, None, None, None)
    assert (full.n, full.accuracy, full.confidence) == (2, 0.5, pytest.approx(0.85))


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_bins_agree_with_scikit_learn(strategy: str) -> None:
    confidence, right = made(600)
    accuracy, mean = calibration_curve(right, confidence, n_bins=10, strategy=strategy)
    answers = judged(confidence, right)
    edges = width_edges() if strategy == "uniform" else mass_edges(answers.confidence)
    ours = [one for one in bins(answers, edges) if one.n]
    assert [one.accuracy for one in ours] == pytest.approx(accuracy)
    assert [one.confidence for one in ours] == pytest.approx(mean)


@pytest.mark.parametrize("seed", range(5))
def test_brier_nll_and_auroc_agree_with_scikit_learn(seed: int) -> None:
    confidence, right = made(300, seed)
    confidence[:40] = np.round(confidence[:40], 1)
    answers = judged(confidence, right)
    assert squared_errors(answers.confidence, answers.right).mean() == pytest.approx(
        brier_score_loss(right, confidence)
    )
    clipped = np.clip(confidence, FLOOR, 1 - FLOOR)
    assert losses(answers.confidence, answers.right).mean() == pytest.approx(log_loss(right, clipped))
    assert auroc(*by_level(answers))[0] == pytest.approx(roc_auc_score(right, confidence))


@pytest.mark.parametrize(
    ("confidence", "right"),
    [([0.0, 1.0, 1.0, 0.0], [1, 0, 1, 0]), ([1.0] * 5, [1, 1, 0, 1, 0]), ([0.5] * 4, [0, 1, 0, 1])],
)
def test_scores_agree_with_scikit_learn_at_0_and_1_and_in_ties(confidence: list[float], right: list[int]) -> None:
    answers = judged(confidence, right)
    clipped = np.clip(confidence, FLOOR, 1 - FLOOR)
    assert squared_errors(answers.confidence, answers.right).mean() == pytest.approx(
        brier_score_loss(right, confidence)
    )
    assert losses(answers.confidence, answers.right).mean() == pytest.approx(log_loss(right, clipped))
    assert auroc(*by_level(answers))[0] == pytest.approx(roc_auc_score(right, confidence))


@settings(deadline=None)
@given(ANSWERS)
def test_the_parts_of_brier_add_up_to_it_where_each_bin_has_one_confidence(pairs: list[tuple[float, bool]]) -> None:
    """Murphy 1973."""
    answers = given_answers([(round(c * 4) / 4, right) for c, right in pairs])
    edges = np.array([0.0, 0.1, 0.3, 0.6, 0.8, 1.0])
    accuracy = answers.right.mean()
    parts = brier_reliability(answers, edges).value() - resolution(answers, edges).value() + accuracy * (1 - accuracy)
    assert parts == pytest.approx(squared_errors(answers.confidence, answers.right).mean(), abs=1e-9)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0.2, 0.5, 0.5, 0.9]), st.booleans()), min_size=1, max_size=6))
def test_aurc_and_augrc_are_means_over_all_orders_of_ties(pairs: list[tuple[float, bool]]) -> None:
    orders = [o for o in itertools.permutations(pairs) if all(a[0] >= b[0] for a, b in itertools.pairwise(o))]
    wrong = np.array([[not right for _, right in order] for order in orders], dtype=float)
    upto = np.cumsum(wrong, axis=1)
    n = len(pairs)
    answers = given_answers(pairs)
    assert aurc(*by_level(answers))[0] == pytest.approx((upto / np.arange(1, n + 1)).mean())
    halfway = upto - wrong / 2
    assert augrc(*by_level(answers))[0] == pytest.approx(halfway.mean() / n)


@settings(deadline=None)
@given(ANSWERS)
def test_augrc_follows_from_auroc_and_accuracy(pairs: list[tuple[float, bool]]) -> None:
    """Traub et al. 2024, equation 5."""
    answers = given_answers(pairs)
    accuracy, area = answers.right.mean(), auroc(*by_level(answers))[0]
    missed = 0.0 if np.isnan(area) else (1 - area) * accuracy * (1 - accuracy)
    assert augrc(*by_level(answers))[0] == pytest.approx(missed + (1 - accuracy) ** 2 / 2, abs=1e-12)


@settings(deadline=None)
@given(ANSWERS, st.integers(0, 1000))
def test_weights_count_answers_as_often_as_repeating_them(pairs: list[tuple[float, bool]], seed: int) -> None:
    answers = given_answers(pairs)
    weights = np.random.default_rng(seed).multinomial(answers.n, np.full(answers.n, 1 / answers.n)).astype(float)
    times = weights.astype(int)
    again = judged(np.repeat(answers.confidence, times), np.repeat(answers.right, times))
    first = np.unique(answers.confidence, return_index=True)[1]
    right = np.add.reduceat(weights * answers.right, first)[None, :]
    wrong = np.add.reduceat(weights, first)[None, :] - right
    for metric in (auroc, aurc, augrc):
        expected = metric(*by_level(again))[0]
        assert metric(right, wrong)[0] == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_smooth_ece_is_the_gap_where_all_confidences_are_equal() -> None:
    for confidence, share in ((1.0, 0.0), (0.0, 1.0), (0.7, 0.25), (0.5, 0.5)):
        right = np.arange(100) < share * 100
        assert smooth_ece(judged(np.full(100, confidence), right), 512).value() == pytest.approx(
            abs(confidence - share), abs=2e-3
        )


def test_smooth_ece_is_the_integral_of_its_definition() -> None:
    """Blasiok, Nakkiran 2023: residuals under a reflected Gaussian, at the bandwidth equal to the error."""
    confidence, right = made(200, 3)
    confidence[:20] = 1.0
    value = smooth_ece(judged(confidence, right), 512).value()
    grid = (np.arange(2000) + 0.5) / 2000
    kernel = sum(
        np.exp(-((grid[:, None] - mirror(confidence)[None, :]) ** 2) / (2 * value**2))
        for mirror in (lambda c: c, lambda c: -c, lambda c: 2 - c, lambda c: 2 + c, lambda c: c - 2)
    ) / (value * np.sqrt(2 * np.pi))
    assert np.abs(kernel @ (right - confidence) / 200).mean() == pytest.approx(value, abs=2e-3)


def test_debiasing_takes_off_what_chance_adds_to_a_calibrated_model() -> None:
    rng = np.random.default_rng(5)
    plain, debiased = [], []
    for _ in range(100):
        confidence = rng.random(500)
        answers = judged(confidence, rng.random(500) < confidence)
        edges = mass_edges(answers.confidence)
        plain.append(ece(answers, edges).value())
        debiased.append(ece_debiased(answers, edges))
    assert np.mean(debiased) < 0.6 * np.mean(plain)


def test_the_folded_normal_has_the_mean_of_its_samples() -> None:
    samples = np.abs(np.random.default_rng(0).normal(0.03, 0.05, 400_000)).mean()
    assert folded_mean(np.array([0.03]), np.array([0.05]))[0] == pytest.approx(samples, rel=0.01)


def test_classwise_ece_is_the_mean_of_each_labels_ece() -> None:
    rng = np.random.default_rng(2)
    probabilities, gold = rng.dirichlet(np.ones(4), 300), rng.integers(0, 4, 300)
    each = [ece(judged(probabilities[:, k], gold == k), width_edges()).value() for k in range(4)]
    assert classwise_ece(probabilities, gold).value() == pytest.approx(np.mean(each))


def test_classwise_ece_needs_the_same_labels_in_all_records() -> None:
    same = classwise([({"yes": 0.9, "no": 0.1}, "yes"), ({"no": 0.4, "yes": 0.6}, "yes")], ["a", "b"], seed=0)
    assert same.value == pytest.approx(0.25)
    other = classwise([({"yes": 1.0}, "yes"), ({"maybe": 0.5, "no": 0.5}, "no")], ["a", "b"], seed=0)
    assert (other.value, other.n) == (None, 2)


def test_a_gold_label_outside_the_labels_makes_all_of_them_wrong() -> None:
    found = classwise([({"yes": 0.5, "no": 0.5}, "perhaps")] * 2, ["a", "b"], seed=0)
    assert found.value == pytest.approx(0.5)


@pytest.mark.parametrize(("right", "expected"), [(1.0, 0.0), (0.0, 1.0)])
def test_all_right_and_all_wrong_have_values_but_no_auroc(right: float, expected: float) -> None:
    found = calibration(judged(np.ones(30), np.full(30, right)), seed=0)
    assert found["auroc"].value is None
    assert found["auroc"].n == 30
    for name in ("ece", "ece_mass", "ece_debiased", "smooth_ece", "brier", "aurc"):
        assert found[name].value == pytest.approx(expected, abs=2e-3)


def test_intervals_do_not_close_to_a_point_where_all_answers_agree() -> None:
    found = calibration(judged(np.ones(30), np.ones(30)), seed=0)
    for name in ("ece", "smooth_ece", "brier", "aurc", "augrc"):
        low, high = found[name].low, found[name].high
        assert low is not None
        assert high is not None
        assert high - low > 0.005


@settings(deadline=None, max_examples=30)
@given(ANSWERS)
def test_an_interval_holds_its_value_and_stays_in_bounds(pairs: list[tuple[float, bool]]) -> None:
    for name, found in calibration(given_answers(pairs), seed=1).items():
        if found.value is not None and len(pairs) >= FEWEST and name != "brier_resolution":
            assert found.low is not None
            assert found.high is not None
            assert found.low - 1e-9 <= found.value <= found.high + 1e-9, name
            assert found.low >= 0, name
            assert found.high <= (WORST if name == "nll" else 1) + 1e-9, name


def test_one_answer_has_values_but_no_interval_where_none_holds_the_truth() -> None:
    found = calibration(judged([0.8], [1]), seed=0)
    assert found["ece"].value == pytest.approx(0.2)
    assert found["brier"].value == pytest.approx(0.04)
    assert found["ece"].high is None
    assert found["brier"].high is None
    assert (found["brier_uncertainty"].high or 0) > 0.2


def test_the_same_seed_gives_the_same_intervals_and_another_seed_the_same_values() -> None:
    answers = judged(*made(120))
    assert calibration(answers, 3) == calibration(answers, 3)
    one, other = calibration(answers, 3), calibration(answers, 4)
    assert one != other
    assert [e.value for e in one.values()] == [e.value for e in other.values()]


def test_answers_in_clusters_have_wider_intervals() -> None:
    confidence, right = made(60, 8)
    alone = calibration(judged(np.tile(confidence, 5), np.tile(right, 5)), 0)
    together = calibration(judged(np.tile(confidence, 5), np.tile(right, 5), np.tile(np.arange(60), 5)), 0)
    for name in ("brier", "auroc", "aurc", "ece", "smooth_ece"):
        narrow, wide = alone[name], together[name]
        assert (wide.high or 0) - (wide.low or 0) > 1.5 * ((narrow.high or 0) - (narrow.low or 0)), name


def test_intervals_of_many_answers_shrink_with_the_root_of_their_number() -> None:
    few, many = (calibration(judged(*made(n, 6)), 0) for n in (2_000, 50_000))
    for name in ("ece", "smooth_ece", "brier", "auroc", "aurc", "augrc", "brier_resolution"):
        ratio = ((few[name].high or 0) - (few[name].low or 0)) / ((many[name].high or 0) - (many[name].low or 0))
        assert 3.3 < ratio < 7.5, name


def test_the_diagram_counts_what_it_leaves_out() -> None:
    found = reliability(judged([0.2, None, 0.9], [0, 1, 1]))
    assert (found.n, found.without, sum(one.n for one in found.width), sum(one.n for one in found.mass)) == (2, 1, 2, 2)


def test_a_bin_is_closed_on_the_right() -> None:
    assert bin_of(np.array([0.0, 0.1, 0.10001, 0.9, 1.0]), width_edges()).tolist() == [0, 0, 1, 8, 9]


def test_all_right_does_not_show_that_a_calibrated_model_is_too_unsure() -> None:
    """Thirty right answers at 0.95 come from a calibrated model once in five times: no gap is shown. At 0.5 one is."""
    sure, unsure = (calibration(judged(np.full(30, level), np.ones(30)), seed=0) for level in (0.95, 0.5))
    for name in ("ece", "ece_mass", "smooth_ece", "brier_reliability"):
        assert sure[name].low == 0
        assert (unsure[name].low or 0) > 0.1


def test_one_wrong_answer_leaves_open_how_well_it_is_told_from_the_others() -> None:
    confidence = np.linspace(0.9, 1.0, 40)
    found = calibration(judged(confidence, np.arange(40) != 20), seed=0)["brier_resolution"]
    assert (found.high or 0) >= 0.025


def test_answers_in_one_bin_say_nothing_of_resolution() -> None:
    found = calibration(judged(np.linspace(0.91, 0.99, 60), np.arange(60) % 3 > 0), seed=0)["brier_resolution"]
    assert (found.value, found.low, found.high) == (0.0, None, None)
