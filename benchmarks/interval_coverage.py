"""How often the reported 95% intervals hold the truth: `python -m benchmarks.interval_coverage [runs] [part ...]`.

Draws runs from models whose true values are known, and counts. `parts` are shares, clusters, pairs, speed, scores and
gaps; all of them without an argument. Shares are counted exactly, over all outcomes; the rest are simulated, and `runs`
of 400 know a coverage of 95% to 1.1 points. Scores and gaps end with a table of the least and the most over all models.
400 runs of scores and gaps take an hour or two of a core. 97.5% is right where the truth lies on a bound (the ECE of a
calibrated model): it can then be missed on one side only.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit
from scipy.stats import binom

from harness.metrics.bayes import weighed
from harness.metrics.binning import mass_edges, width_edges
from harness.metrics.brier import reliability, resolution
from harness.metrics.calibration import areas, gaps, losses_of
from harness.metrics.draws import draws
from harness.metrics.ece import ece
from harness.metrics.estimate import Estimate
from harness.metrics.intervals import bounded_mean, mid_p, share
from harness.metrics.judged import Floats, Judged, judged
from harness.metrics.latency import quantile
from harness.metrics.likelihood import losses
from harness.metrics.ranking import augrc, aurc, auroc, by_level
from harness.metrics.ratios import ratio
from harness.metrics.smooth_ece import smooth_ece
from harness.metrics.statistics import Tested, log_ratios, paired_losses, paired_means, paired_outcomes

TRUTH = 400_000
"""Answers from which the true value of a metric is computed."""


@dataclass
class Held:
    """What was seen of one kind of interval."""

    runs: int = 0
    under: int = 0
    over: int = 0
    width: float = 0.0

    def add(self, truth: float, found: Estimate | Tested) -> None:
        if found.low is None or found.high is None:
            return
        self.runs += 1
        self.over += truth > found.high + 1e-9
        self.under += truth < found.low - 1e-9
        self.width += found.high - found.low

    @property
    def share(self) -> float:
        """How often the truth was held."""
        return 1 - (self.under + self.over) / self.runs

    def __str__(self) -> str:
        if not self.runs:
            return "no interval"
        sides = f"above {self.over / self.runs:.1%}, below {self.under / self.runs:.1%}"
        return f"{self.share:6.1%}   truth {sides}   mean width {self.width / self.runs:.4f}   of {self.runs} runs"


@dataclass(frozen=True)
class Model:
    """How confidences are spread, and how often an answer is right at each of them."""

    name: str
    draw: Callable[[np.random.Generator, int], Floats]
    right: Callable[[Floats], Floats]


def _middling(rng: np.random.Generator, n: int) -> Floats:
    return rng.beta(4, 1.5, n)


def _saturated(rng: np.random.Generator, n: int) -> Floats:
    return np.minimum(rng.beta(6, 0.35, n), 1.0)


def _sure(one: float, other: float) -> Callable[[np.random.Generator, int], Floats]:
    return lambda rng, n: rng.beta(one, other, n)


MODELS = (
    Model("calibrated", _middling, lambda c: c),
    Model("calibrated, saturated", _saturated, lambda c: c),
    Model("5 points too sure", _middling, lambda c: np.clip(c - 0.05, 0, 1)),
    Model("11 points too sure", _middling, lambda c: c**1.6),
    Model("9 points too sure, saturated", _saturated, lambda c: 0.9 * c),
    Model("too sure and too unsure", _middling, lambda c: np.clip(c + 0.12 * np.sign(np.sin(20 * c)), 0, 1)),
    Model("95% right, sure", _sure(20, 1), lambda c: c),
    Model("99% right, sure", _sure(40, 0.4), lambda c: c),
    Model("20% right, unsure", _sure(2, 8), lambda c: c),
    Model("sure, a third wrong", _sure(30, 0.5), lambda c: 0.7 * c),
)


def shares() -> None:
    """Exactly, by summing over all outcomes."""
    for n in (20, 50, 150, 500):
        ends = np.array([mid_p(count / n, n) for count in range(n + 1)])
        for name, truths in (
            ("all shares", np.linspace(0.001, 0.999, 999)),
            ("above 95%", np.linspace(0.95, 0.999, 99)),
        ):
            held = (ends[:, :1] <= truths) & (truths <= ends[:, 1:])
            coverage = (held * binom.pmf(np.arange(n + 1)[:, None], n, truths)).sum(axis=0)
            print(f"share, n = {n}, {name}: mean {coverage.mean():.1%}, least {coverage.min():.1%}")


def clusters(runs: int, rng: np.random.Generator) -> None:
    """Shares and scores of examples that come in clusters of five with a correlation of about 0.3; calibration."""
    for groups in (20, 60):
        hits, scores = Held(), Held()
        for _ in range(runs):
            cluster = np.repeat(np.arange(groups), 5)
            chance = np.repeat(rng.beta(0.8 * 7 / 3, 0.2 * 7 / 3, groups), 5)
            hits.add(0.8, share((rng.random(chance.size) < chance).astype(float), cluster))
            scores.add(0.8, bounded_mean(chance, cluster))
        print(f"share, {groups} clusters of 5: {hits}\nmean score, {groups} clusters of 5: {scores}")
    many = _clustered(TRUTH // 5, rng)
    error = float(((many.confidence - many.right) ** 2).mean())
    area = float(auroc(*by_level(many))[0])
    for groups in (10, 20, 60):
        brier, rank = Held(), Held()
        for run in range(runs):
            half = weighed(answers := _clustered(groups, rng), run)
            brier.add(error, losses_of(answers, half)["brier"])
            rank.add(area, areas(answers, half)["auroc"])
        print(f"Brier, {groups} clusters of 5: {brier}\nAUROC, {groups} clusters of 5: {rank}", flush=True)


def _clustered(groups: int, rng: np.random.Generator) -> Judged:
    """Clusters of five: all of one are harder or easier than the model thinks, by a normal step in log-odds."""
    confidence = rng.beta(4, 1.5, 5 * groups)
    step = np.repeat(rng.normal(0, 1, groups), 5)
    return judged(confidence, rng.random(5 * groups) < expit(logit(confidence) + step), np.repeat(np.arange(groups), 5))


def scores(runs: int, rng: np.random.Generator) -> None:
    """Brier, NLL and areas, and mean confidence, under every model."""

    def found(answers: Judged, seed: int) -> dict[str, Estimate]:
        half = weighed(answers, seed)
        sure = {"confidence": bounded_mean(answers.confidence)}
        return losses_of(answers, half) | areas(answers, half) | sure

    _calibrated(runs, rng, found, (5, 10, 20, 50, 150, 1000))


def distances(runs: int, rng: np.random.Generator) -> None:
    """ECE of all kinds and the parts of Brier, under every model."""
    _calibrated(runs, rng, lambda answers, seed: gaps(answers, draws(answers, seed)), (10, 20, 50, 150, 1000))


def _calibrated(
    runs: int,
    rng: np.random.Generator,
    find: Callable[[Judged, int], dict[str, Estimate]],
    sizes: tuple[int, ...],
) -> None:
    table: dict[str, dict[int, list[float]]] = {}
    for model in MODELS:
        truth = true_values(model, rng)
        for n in sizes:
            held: dict[str, Held] = {}
            for run in range(runs):
                for name, estimate in find(_answers(model, n, rng), run).items():
                    held.setdefault(name, Held()).add(truth[name], estimate)
            for name, one in held.items():
                print(f"{model.name}, n = {n}, {name} = {truth[name]:.4f}: {one}", flush=True)
                if one.runs:
                    table.setdefault(name, {}).setdefault(n, []).append(one.share)
    print("\n| metric | " + " | ".join(f"n = {n:,}" for n in sizes) + " |\n|" + "---|" * (len(sizes) + 1))
    for name, by_size in table.items():
        cells = (f"{min(by_size[n]):.1%} to {max(by_size[n]):.1%}" if n in by_size else "none" for n in sizes)
        print(f"| {name} | " + " | ".join(cells) + " |")


def true_values(model: Model, rng: np.random.Generator) -> dict[str, float]:
    """The values that a metric tends to. Gaps are computed from the chances of being right, free of noise."""
    confidence = np.sort(model.draw(rng, TRUTH))
    chance = model.right(confidence)
    smooth = Judged(confidence, chance, np.arange(TRUTH), TRUTH, 0)
    width, mass = width_edges(), mass_edges(confidence)
    drawn = judged(confidence, rng.random(TRUTH) < chance)
    seen = by_level(drawn)
    one, zero = np.ones(TRUTH), np.zeros(TRUTH)
    return {
        "ece": ece(smooth, width).value(),
        "ece_mass": ece(smooth, mass).value(),
        "ece_debiased": ece(smooth, mass).value(),
        "smooth_ece": smooth_ece(smooth).value(),
        "brier": float((chance * (1 - confidence) ** 2 + (1 - chance) * confidence**2).mean()),
        "brier_reliability": reliability(smooth, width).value(),
        "brier_resolution": resolution(smooth, width).value(),
        "brier_uncertainty": float(chance.mean() * (1 - chance.mean())),
        "nll": float((chance * losses(confidence, one) + (1 - chance) * losses(confidence, zero)).mean()),
        "auroc": float(auroc(*seen)[0]),
        "aurc": float(aurc(*seen)[0]),
        "augrc": float(augrc(*seen)[0]),
        "confidence": float(confidence.mean()),
    }


def _answers(model: Model, n: int, rng: np.random.Generator) -> Judged:
    confidence = model.draw(rng, n)
    return judged(confidence, rng.random(n) < model.right(confidence))


def pairs(runs: int, rng: np.random.Generator) -> None:
    """Paired differences, and how often no difference is taken for one."""
    for n in (50, 150, 500):
        for better in (0.0, 0.06):
            outcomes, scores, wrong = Held(), Held(), np.zeros(2)
            for run in range(runs):
                sign = rng.choice([1.0, -1.0, 0.0], n, p=[(0.14 + better) / 2, (0.14 - better) / 2, 0.86])
                tested = paired_outcomes((sign > 0).astype(float), (sign < 0).astype(float), None, run)
                graded = paired_means(sign * rng.beta(2, 2, n), None, run)
                outcomes.add(better, tested)
                scores.add(better / 2, graded)
                wrong += [(tested.p or 1) < 0.05, (graded.p or 1) < 0.05]
            called = f"called different {wrong[0] / runs:.1%} and {wrong[1] / runs:.1%}"
            print(f"accuracy difference of {better}, n = {n}: {outcomes}")
            print(f"score difference of {better / 2}, n = {n}: {scores}   {called}", flush=True)


def paired_scores(runs: int, rng: np.random.Generator) -> None:
    """Differences in Brier score of two arms that say the same, one surer than the other; those of no difference are
    made of two levels of confidence whose scores cross at the true share of wrong answers."""
    for sure, less in ((0.9, 0.6), (0.99, 0.9), (0.999, 0.95)):
        gain, loss = (1 - less) ** 2 - (1 - sure) ** 2, sure**2 - less**2
        for often in (gain / (gain + loss), 0.3, 0.01):
            truth = often * loss - (1 - often) * gain
            for n in (20, 50, 150, 500):
                held, wrong = Held(), 0
                for run in range(runs):
                    missed = rng.random(n) < often
                    tested = paired_losses(np.where(missed, loss, -gain), np.where(missed, -gain, loss), None, run)
                    held.add(truth, tested)
                    wrong += (tested.p or 1) < 0.05
                print(f"Brier, {sure} against {less}, {often:.1%} wrong, difference {truth:.4f}, n = {n}: {held}   "
                      f"called different {wrong / runs:.1%}", flush=True)  # fmt: skip


def speed(runs: int, rng: np.random.Generator) -> None:
    """Rates over blocks that vary by a tenth, ratios of paired blocks, quantiles of times."""
    for blocks in (3, 6, 12):
        rates, ratios = Held(), Held()
        for _ in range(runs):
            seconds = rng.uniform(1, 2, blocks)
            rates.add(20.0, ratio(20 * seconds * rng.lognormal(-0.005, 0.1, blocks), seconds))
            ratios.add(1.1, log_ratios(np.log(1.1) + rng.normal(0, 0.1, blocks)))
        print(f"rate, {blocks} blocks: {rates}\nratio of rates, {blocks} blocks: {ratios}")
    for level, times in _times(rng):
        held, drifting = Held(), Held()
        block = np.repeat(np.arange(12), 16)
        for _ in range(runs):
            held.add(level, quantile(rng.random(192), level, block))
            drifting.add(times, quantile(np.exp(rng.normal(0, 0.3, 192) + rng.normal(0, 0.1, 12)[block]), level, block))
        print(
            f"p{level * 100:.0f} of 12 blocks of 16: {held}\np{level * 100:.0f}, blocks drifting: {drifting}",
            flush=True,
        )


def _times(rng: np.random.Generator) -> Iterator[tuple[float, float]]:
    """The true quantiles of the drifting times."""
    many = np.exp(rng.normal(0, np.hypot(0.3, 0.1), TRUTH))
    for level in (0.5, 0.9):
        yield level, float(np.quantile(many, level))


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    asked = sys.argv[2:] or ["shares", "clusters", "pairs", "speed", "scores", "gaps"]
    rng = np.random.default_rng(0)
    for part in asked:
        match part:
            case "shares":
                shares()
            case "clusters":
                clusters(runs, rng)
            case "pairs":
                pairs(runs, rng)
                paired_scores(runs, rng)
            case "speed":
                speed(runs, rng)
            case "scores":
                scores(runs, rng)
            case "gaps":
                distances(runs, rng)
            case _:
                sys.exit(f"no part {part!r}; there are shares, clusters, pairs, speed, scores and gaps")


if __name__ == "__main__":
    main()
