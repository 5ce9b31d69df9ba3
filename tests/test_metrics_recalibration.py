"""Temperature and Platt scaling."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from harness.metrics.judged import Floats, Judged, judged
from harness.metrics.recalibration import (
    fit_platt,
    fit_temperature,
    halves,
    log_odds,
    recalibration,
    scaled,
)


def too_sure(n: int, temperature: float = 2.0, offset: float = 0.0, seed: int = 0) -> Judged:
    """Answers whose true log-odds are those of the confidence, divided by a temperature, plus an offset."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(1.5, 2.0, n)
    return judged(expit(odds), rng.random(n) < expit(odds / temperature + offset))


def logistic(answers: Judged, intercept: bool) -> tuple[float, float]:
    """Slope and offset by scikit-learn, Platt's soft targets given as weights of both outcomes."""
    hits, n = answers.right.sum(), answers.n
    target = np.where(answers.right > 0, (hits + 1) / (hits + 2), 1 / (n - hits + 2))
    odds = log_odds(answers.confidence)
    model = LogisticRegression(C=1e12, fit_intercept=intercept, tol=1e-10, max_iter=10_000)
    model.fit(np.tile(odds, 2)[:, None], np.repeat([1, 0], n), np.concatenate([target, 1 - target]))
    return float(model.coef_[0, 0]), float(np.ravel(model.intercept_)[0]) if intercept else 0.0


@pytest.mark.parametrize("seed", range(3))
def test_both_fits_agree_with_scikit_learn(seed: int) -> None:
    answers = too_sure(400, 2.0, 0.5, seed)
    assert fit_platt(answers) == pytest.approx(logistic(answers, True), abs=1e-3)
    assert 1 / fit_temperature(answers) == pytest.approx(logistic(answers, False)[0], abs=1e-3)


def test_a_fit_finds_what_was_built_in() -> None:
    answers = too_sure(20_000, 2.0, 0.0)
    assert fit_temperature(answers) == pytest.approx(2.0, rel=0.05)
    slope, offset = fit_platt(too_sure(20_000, 2.0, 0.7))
    assert (slope, offset) == pytest.approx((0.5, 0.7), abs=0.05)


def test_scaling_helps_on_examples_it_was_not_fitted_on() -> None:
    found = recalibration(too_sure(3000, 3.0), seed=0)
    assert found is not None
    assert (found.n_fit, found.n) == (1500, 1500)
    for metric in ("ece", "brier", "nll"):
        assert (found.after_temperature[metric].value or 9) < (found.before[metric].value or 0)
        assert (found.after_platt[metric].value or 9) < (found.before[metric].value or 0)
    assert sum(one.n for one in found.bins) == 1500


def test_the_halves_share_no_cluster_and_lose_no_answer() -> None:
    rng = np.random.default_rng(1)
    confidence, cluster = rng.random(300), np.repeat(np.arange(60), 5)
    fitted, reported = halves(judged(confidence, rng.random(300) < 0.5, cluster), seed=3)
    by_value = dict(zip(confidence.tolist(), cluster.tolist(), strict=True))
    sides = [{by_value[c] for c in half.confidence.tolist()} for half in (fitted, reported)]
    assert not sides[0] & sides[1]
    assert fitted.n + reported.n == 300
    assert fitted.clusters == reported.clusters == 30


@pytest.mark.parametrize("right", [0.0, 1.0])
def test_a_half_that_is_all_right_or_all_wrong_keeps_the_fit_finite(right: float) -> None:
    found = recalibration(judged(np.full(100, 0.9), np.full(100, right)), seed=0)
    assert found is not None
    assert np.isfinite([found.temperature, found.slope, found.offset]).all()


def test_confidences_of_exactly_0_and_1_keep_the_fit_finite() -> None:
    confidence: Floats = np.tile([0.0, 1.0, 1.0, 0.5], 50)
    found = recalibration(judged(confidence, np.tile([0, 1, 0, 1], 50)), seed=0)
    assert found is not None
    assert np.isfinite([found.temperature, found.slope, found.offset]).all()


def test_too_few_answers_are_not_scaled() -> None:
    assert recalibration(too_sure(30), seed=0) is None


def test_scaling_by_temperature_keeps_the_order_of_answers() -> None:
    answers = too_sure(50)
    assert scaled(answers, 0.5, 0.0).right.tolist() == answers.right.tolist()
