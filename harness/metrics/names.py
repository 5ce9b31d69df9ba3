"""What every metric is called, in which unit, and which way is better."""

from typing import Literal

import msgspec

Better = Literal["higher", "lower", "neither"]
Unit = Literal["share", "probability", "nats", "seconds", "per second", "none"]


class Name(msgspec.Struct, frozen=True):
    """`title` is for tables, `meaning` one sentence for a reader who asks."""

    title: str
    unit: Unit
    better: Better
    meaning: str


_CALIBRATION = {
    "ece": Name("ECE", "share", "lower", "Mean gap between confidence and accuracy, over 10 bins of equal width."),
    "ece_mass": Name("ECE, equal mass", "share", "lower", "The same over 10 bins of equally many answers."),
    "ece_debiased": Name("ECE, debiased", "share", "lower", "Equal-mass ECE less what chance alone adds to it."),
    "smooth_ece": Name("smooth ECE", "share", "lower", "Gap between confidence and accuracy without bins."),
    "brier": Name("Brier", "none", "lower", "Mean squared distance between confidence and outcome."),
    "brier_reliability": Name("Brier: reliability", "none", "lower", "The part of Brier from miscalibration."),
    "brier_resolution": Name("Brier: resolution", "none", "higher", "What telling right from wrong takes off Brier."),
    "brier_uncertainty": Name("Brier: uncertainty", "none", "neither", "Brier of always saying the accuracy."),
    "nll": Name("NLL", "nats", "lower", "Mean negative log-probability of the outcome."),
    "auroc": Name("AUROC", "share", "higher", "How often a right answer is surer than a wrong one."),
    "aurc": Name("AURC", "share", "lower", "Mean error rate over all coverages, surest answers first."),
    "augrc": Name("AUGRC", "share", "lower", "Mean risk of an undetected error over all coverages."),
    "confidence": Name("confidence", "probability", "neither", "Mean confidence."),
}

_TIMES = {
    "ttft_s": "time to first token",
    "tpot_s": "time per output token after the first",
    "itl_s": "time between tokens",
    "e2e_s": "time to the whole answer",
}

NAMES: dict[str, Name] = {
    "accuracy": Name("accuracy", "share", "higher", "Right of labelled and answered."),
    "score": Name("score", "share", "higher", "Mean partial credit of labelled and answered."),
    "validity": Name("validity", "share", "higher", "Valid of all that did not fail."),
    "coverage": Name("coverage", "share", "higher", "Constraints the engine can express, of all that did not fail."),
    "compliance": Name("compliance", "share", "higher", "Valid of those compiled that did not fail."),
    "invalid": Name("invalid", "share", "lower", "Ended by itself with text the constraint rejects."),
    "truncated": Name("truncated", "share", "lower", "Ended by the token budget."),
    "stopped_early": Name("stopped early", "share", "lower", "Ended by a stop string."),
    "failed": Name("failed", "share", "lower", "No answer came back."),
    "unsupported": Name("unsupported", "share", "lower", "The engine cannot express the constraint."),
    **{
        f"{confidence}_{key}": Name(f"{name.title} ({confidence})", name.unit, name.better, name.meaning)
        for confidence in ("label", "path", "raw")
        for key, name in _CALIBRATION.items()
    },
    "label_classwise_ece": Name(
        "classwise ECE (label)", "share", "lower", "ECE of each label's probability, averaged."
    ),
    **{
        f"{kind}_p{level}": Name(f"{kind[:-2].upper()} p{level}", "seconds", "lower", f"{level}% of {text} are below.")
        for kind, text in _TIMES.items()
        for level in (50, 90, 99)
    },
    "tokens_per_s": Name("tokens/s", "per second", "higher", "Output tokens per second of block time."),
    "requests_per_s": Name("requests/s", "per second", "higher", "Answers per second of block time."),
    "goodput_per_s": Name("goodput", "per second", "higher", "Answers within the targets per second of block time."),
    "correct_goodput_per_s": Name(
        "correct goodput", "per second", "higher", "In time (where targets are set), valid and right, per second."
    ),
    "warm_tokens_per_s": Name("tokens/s, warm", "per second", "higher", "Without each constraint's first request."),
    "compile_s": Name("compile time", "seconds", "lower", "Mean of a constraint's first use, before its first mask."),
    "cold": Name("cold requests", "share", "neither", "Requests that were their constraint's first use."),
    "mask_s_per_token": Name("mask time/token", "seconds", "lower", "Making masks, wherever it ran."),
    "wait_s_per_token": Name("mask wait/token", "seconds", "lower", "The loop standing still for masks."),
    "forward_s_per_token": Name("forward/token", "seconds", "lower", "The request's share of forward passes."),
    "apply_s_per_token": Name("apply/token", "seconds", "lower", "The request's share of putting masks on logits."),
    "mask_hidden": Name("mask time hidden", "share", "higher", "Share of mask time the loop did not wait for."),
    "mass": Name("mass kept", "probability", "higher", "Mean over answers: product of the mass the mask kept."),
    "forced": Name("forced tokens", "share", "neither", "Mean share of tokens that were the only one allowed."),
    "confidence_gap": Name("confidence gap", "probability", "neither", "Mean of path minus raw confidence."),
    "wanted_forbidden": Name(
        "wanted but forbidden", "share", "lower", "Tokens whose most likely choice was forbidden."
    ),
}
"""In the order of tables. `harness.metrics.summary` fills exactly these for every arm."""
