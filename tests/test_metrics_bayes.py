"""Resamples that know of what was not seen."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from harness.metrics.bayes import CUTS, FEWEST, levels, weighed
from harness.metrics.calibration import calibration, losses_of
from harness.metrics.judged import Floats, Judged, judged


def drawn(n: int, seed: int = 0) -> Judged:
    """Answers of a calibrated model."""
    rng = np.random.default_rng(seed)
    confidence = rng.beta(4, 1.5, n)
    return judged(confidence, rng.random(n) < confidence)


def share_right(rights: Floats, wrongs: Floats) -> Floats:
    return np.asarray(rights.sum(axis=1) / (rights.sum(axis=1) + wrongs.sum(axis=1)))


@pytest.mark.parametrize(("right", "n"), [(0, 20), (3, 20), (19, 20), (60, 150)])
def test_of_a_share_the_resamples_are_those_of_jeffreys(right: int, n: int) -> None:
    answers = judged(np.linspace(0.2, 0.9, n), np.arange(n) < right)
    shares = np.concatenate([share_right(w.right, w.wrong) for w in (weighed(answers, seed) for seed in range(5))])
    for level in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert np.quantile(shares, level) == pytest.approx(beta(right + 0.5, n - right + 0.5).ppf(level), abs=0.012)


def test_where_no_answer_was_wrong_the_score_of_a_model_that_errs_at_times_is_not_excluded() -> None:
    """Of 50 answers of a model that is wrong once in fifty and as sure as it is right, a third have no error."""
    found = losses_of(answers := judged(np.full(50, 0.98), np.ones(50)), weighed(answers, 0))
    assert found["brier"].value == pytest.approx(0.0004)
    assert found["brier"].low == pytest.approx(0.0004)
    assert 0.0196 < (found["brier"].high or 0) < 0.08
    assert 0.098 < (found["nll"].high or 0) < 0.35


@pytest.mark.parametrize("share", [0.5, 0.9, 0.98])
def test_the_interval_of_the_brier_score_of_thirty_answers_holds_the_truth(share: float) -> None:
    """In 95% of samples where both outcomes are common, and in more where one is rare; 200 samples know that to 1.5
    points. Half of the wrong answers are as sure as the right ones."""
    rng, held = np.random.default_rng(4), 0
    sure, unsure = share + (1 - share) / 2, share / 2
    truth = share * (1 - sure) ** 2 + (1 - share) * (sure**2 + unsure**2) / 2
    for seed in range(200):
        right = rng.random(30) < share
        answers = judged(np.where(right | (rng.random(30) < 0.5), sure, unsure), right)
        brier = losses_of(answers, weighed(answers, seed))["brier"]
        held += (brier.low or 0) <= truth <= (brier.high or 0)
    assert held / 200 > 0.92


def test_many_confidences_share_levels_and_intervals_stay_where_they_were() -> None:
    answers = drawn(3000)
    assert levels(answers).starts.size <= 2 * CUTS + 1
    assert levels(drawn(300)).starts.size == 300
    grouped = losses_of(answers, weighed(answers, 0))["brier"]
    error = float(((answers.confidence - answers.right) ** 2).std() / np.sqrt(3000))
    assert (grouped.high or 0) - (grouped.low or 0) == pytest.approx(2 * 1.96 * error, rel=0.1)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), min_size=1, max_size=40), st.integers(0, 9))
def test_equal_confidences_are_in_one_level_and_every_answer_counts_once(confidence: list[float], seed: int) -> None:
    right = np.random.default_rng(seed).random(len(confidence)) < 0.5
    answers = judged(confidence, right)
    found, resamples = levels(answers), weighed(answers, seed)
    assert found.starts.size == len(set(confidence))
    assert found.right.sum() + found.wrong.sum() == answers.n
    assert np.allclose((resamples.right + resamples.wrong).sum(axis=1), answers.n)


def test_answers_of_one_cluster_are_weighed_as_one() -> None:
    """The same answer in each cluster, five times: as little is known as of one of each."""
    one = drawn(40)
    five = judged(np.repeat(one.confidence, 5), np.repeat(one.right, 5), np.repeat(np.arange(40), 5))
    (alone, together) = (losses_of(answers, weighed(answers, 0))["brier"] for answers in (one, five))
    assert (alone.high or 0) - (alone.low or 0) == pytest.approx((together.high or 0) - (together.low or 0), rel=0.06)


@pytest.mark.parametrize(
    ("names", "fewest"), [(("brier", "nll", "aurc", "augrc"), FEWEST), (("ece", "smooth_ece", "brier_reliability"), 10)]
)
def test_so_few_answers_have_values_without_an_interval(names: tuple[str, ...], fewest: int) -> None:
    few, enough = (calibration(drawn(n), 0) for n in (fewest - 1, fewest))
    for name in names:
        assert few[name].value is not None
        assert few[name].low is None
        assert enough[name].low is not None


def test_the_same_seed_gives_the_same_interval() -> None:
    assert losses_of(drawn(80), weighed(drawn(80), 3)) == losses_of(drawn(80), weighed(drawn(80), 3))
