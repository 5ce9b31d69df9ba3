"""Metrics against the libraries that others measure calibration with, where these are installed.

On random answers, and on edges where the library follows the definition. They do not at all edges: torchmetrics closes
bins on the left, relplot gives confidences of exactly 0 and 1 half their weight.
"""

from typing import Any

import numpy as np
import pytest

from harness.metrics.binning import mass_edges, width_edges
from harness.metrics.ece import ece, ece_debiased
from harness.metrics.judged import Floats, judged
from harness.metrics.smooth_ece import smooth_ece

KINDS = ("too sure", "calibrated", "saturated", "all right", "all wrong", "one", "tied")


def answers(kind: str, n: int = 400) -> tuple[Floats, Floats]:
    """Confidences and outcomes, none of them on an edge of ten bins."""
    rng = np.random.default_rng(len(kind))
    sure = rng.beta(4, 1.5, n)
    match kind:
        case "too sure":
            return sure, (rng.random(n) < sure**1.6).astype(float)
        case "calibrated":
            return sure, (rng.random(n) < sure).astype(float)
        case "saturated":
            near = np.clip(rng.beta(6, 0.3, n), 0, 1 - 1e-6)
            return near, (rng.random(n) < 0.9 * near).astype(float)
        case "all right":
            return sure, np.ones(n)
        case "all wrong":
            return sure, np.zeros(n)
        case "one":
            return np.array([0.83]), np.array([0.0])
        case _:
            tied = rng.choice([0.25, 0.55, 0.95], n)
            return tied, (rng.random(n) < 0.8 * tied).astype(float)


@pytest.mark.parametrize("kind", KINDS)
def test_ece_agrees_with_torchmetrics(kind: str) -> None:
    torch = pytest.importorskip("torch")
    functional: Any = pytest.importorskip("torchmetrics.functional.classification")
    confidence, right = answers(kind)
    theirs = functional.binary_calibration_error(
        torch.tensor(confidence), torch.tensor(right).long(), n_bins=10, norm="l1"
    )
    assert ece(judged(confidence, right), width_edges()).value() == pytest.approx(float(theirs), abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_ece_agrees_with_netcal(kind: str) -> None:
    confidences: Any = pytest.importorskip("netcal.metrics.confidence")
    confidence, right = answers(kind)
    theirs = confidences.ECE(10).measure(confidence, right.astype(int))
    assert ece(judged(confidence, right), width_edges()).value() == pytest.approx(float(theirs), abs=1e-9)


@pytest.mark.parametrize("kind", ["too sure", "calibrated", "saturated", "all right", "all wrong"])
def test_equal_mass_and_debiased_ece_agree_with_their_authors_library(kind: str) -> None:
    """Kumar, Liang, Ma 2019: they simulate the normal that we integrate."""
    theirs: Any = pytest.importorskip("calibration")
    confidence, right = answers(kind)
    binned = theirs.utils.bin(list(zip(confidence, right, strict=True)), theirs.utils.get_equal_bins(list(confidence)))
    ours = judged(confidence, right)
    edges = mass_edges(ours.confidence)
    np.random.seed(0)
    assert ece(ours, edges).value() == pytest.approx(theirs.utils.plugin_ce(binned, power=1), abs=1e-9)
    debiased = theirs.utils.normal_debiased_ce(binned, power=1, resamples=4000)
    assert ece_debiased(ours, edges) == pytest.approx(max(debiased, 0.0), abs=2e-3)


@pytest.mark.parametrize("kind", ["too sure", "calibrated", "all right", "all wrong", "tied"])
def test_smooth_ece_agrees_with_its_authors_library(kind: str) -> None:
    """Blasiok, Nakkiran 2023: relplot finds the bandwidth to 1/1024 and evaluates on 200 points."""
    relplot: Any = pytest.importorskip("relplot")
    confidence, right = answers(kind)
    assert smooth_ece(judged(confidence, right), 512).value() == pytest.approx(
        relplot.smECE(confidence, right), abs=4e-3
    )
