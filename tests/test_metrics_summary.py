"""The summary of a run: its shape, its repeatability, and two runs by the same code as two arms."""

import json
import random

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metrics_records import slim, slims, whole

from harness.metrics.estimate import Estimate
from harness.metrics.names import NAMES
from harness.metrics.pairing import same_arms
from harness.metrics.summarise import summarise
from harness.metrics.summary import Summary
from harness.metrics.whole import Line
from harness.record import Record, Slim
from harness.request import Cost, Trace


def run(n: int, seed: int = 0, block: int = 8, **changed: object) -> list[Slim]:
    """Two arms over the same examples, the second better and slower."""
    rng = np.random.default_rng(seed)
    records = []
    for arm, share, pace in (("none", 0.6, 1.0), ("native/llguidance", 0.8, 2.0)):
        for i in range(n):
            right = bool(rng.random() < share)
            sent_s = (i // block) * 100.0 + (0 if arm == "none" else 50)
            e2e_s = pace * float(rng.lognormal(0, 0.1))
            fields = {"arm": arm, "example": f"e{i}", "block": i // block, "right": right, "score": float(right)}
            sure = float(rng.beta(3, 1))
            given = {"label_confidence": sure, "path_confidence": sure, "raw_confidence": sure**2, "e2e_s": e2e_s}
            records.append(slim(**(fields | given | {"sent_s": sent_s} | changed)))
    return records


def summary(records: list[Slim], **options: object) -> Summary:
    return summarise(records, "intents", "embedded", 7, **options)  # type: ignore[arg-type]


def lines(records: list[Record]) -> list[Line]:
    return [(str, msgspec.json.encode(record)) for record in records]


def test_the_file_has_the_shape_that_was_agreed() -> None:
    found = json.loads(msgspec.json.encode(summary(run(40))))
    assert (found["task"], found["deployment"]) == ("intents", "embedded")
    assert set(found["arms"]) == {"none", "native/llguidance"}
    assert set(found["arms"]["none"]["accuracy"]) == {"value", "low", "high", "n"}
    assert {"metric", "arm", "against", "value", "low", "high", "n", "p", "p_holm", "mdd"} <= set(found["pairs"][0])


def test_it_can_be_read_back() -> None:
    made = summary(run(40))
    assert msgspec.json.decode(msgspec.json.encode(made), type=Summary) == made


def test_every_arm_has_every_metric_in_the_same_order() -> None:
    found = summary([*run(10), *slims(10, arm="failing", outcome="failed", right=None, e2e_s=None)])
    assert [list(metrics) for metrics in found.arms.values()] == [list(NAMES)] * 3


def test_the_same_seed_gives_the_same_bytes_whatever_the_order_of_lines() -> None:
    records = run(40)
    shuffled = random.Random(1).sample(records, len(records))
    order = ("none", "native/llguidance")
    assert msgspec.json.encode(summary(records, order=order)) == msgspec.json.encode(summary(shuffled, order=order))


@settings(deadline=None, max_examples=10)
@given(st.data())
def test_no_mix_of_outcomes_and_missing_values_puts_a_nan_into_the_file(data: st.DataObject) -> None:
    maybe = st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0]))
    outcome = st.sampled_from(["valid", "invalid", "truncated", "stopped_early", "failed", "unsupported"])
    records = [
        slim(arm=arm, example=f"e{i}", block=i % 2, outcome=data.draw(outcome),
             right=data.draw(st.sampled_from([True, False, None])), score=data.draw(maybe),
             label_confidence=data.draw(maybe), path_confidence=data.draw(maybe),
             raw_confidence=data.draw(maybe), mass=data.draw(maybe), forced=data.draw(maybe), ttft_s=data.draw(maybe),
             e2e_s=data.draw(maybe), tpot_s=data.draw(maybe),
             cost=Cost(*(data.draw(maybe) for _ in range(5))))
        for arm in ("a", "b") for i in range(data.draw(st.integers(0, 6)))
    ]  # fmt: skip
    encoded = msgspec.json.encode(summary(records))
    assert msgspec.json.decode(encoded, type=Summary) == summary(records)
    assert b"NaN" not in encoded


def test_an_estimate_refuses_to_be_nan() -> None:
    with pytest.raises(ValueError, match="finite"):
        Estimate(float("nan"), None, None, 3)


def test_a_better_arm_is_found_better_and_a_slower_one_slower() -> None:
    pairs = {pair.metric: pair for pair in summary(run(200)).pairs}
    accuracy, rate = pairs["accuracy"], pairs["requests_per_s"]
    assert (accuracy.arm, accuracy.against, accuracy.test) == ("native/llguidance", "none", "mcnemar")
    assert accuracy.value == pytest.approx(0.2, abs=0.15)
    assert (accuracy.p or 0) <= (accuracy.p_holm or 0) < 0.05
    assert (rate.kind, rate.test, rate.n) == ("ratio", "blocks", 25)
    assert rate.value == pytest.approx(0.5, abs=0.05)
    assert (rate.p_holm or 1) < 0.001
    assert "score" not in pairs


def test_only_examples_that_both_arms_answered_are_paired() -> None:
    one = slims(10, arm="one")
    other = slims(10, arm="two", outcome=["failed"] * 4 + ["valid"] * 6, right=[None] * 4 + [True] * 6)
    pairs = {pair.metric: pair for pair in summary([*one, *other]).pairs}
    assert (pairs["accuracy"].n, pairs["validity"].n) == (6, 6)


def test_a_score_of_partial_credit_is_paired_by_the_bootstrap() -> None:
    one = slims(30, arm="one", right=False, score=0.5)
    other = slims(30, arm="two", right=False, score=[0.25, 0.75, 1.0] * 10)
    (pair,) = [pair for pair in summary([*one, *other]).pairs if pair.metric == "score"]
    assert (pair.test, pair.n) == ("bootstrap", 30)
    assert pair.value == pytest.approx(1 / 6)


def test_examples_in_clusters_are_tested_by_cluster_and_said_to_be() -> None:
    records = [
        slim(arm=arm, example=f"e{i}", cluster=f"c{i // 4}", right=i % 3 == 0) for arm in "ab" for i in range(40)
    ]
    found = summary(records)
    assert {pair.test for pair in found.pairs if pair.metric == "accuracy"} == {"bootstrap"}
    assert any("10 clusters" in note for note in found.notes)


def test_two_runs_are_compared_as_two_arms_are() -> None:
    before, after = run(60, 1), run(60, 2)
    renamed = [
        msgspec.structs.replace(record, arm=f"{name}:{record.arm}")
        for name, records in (("before", before), ("after", after))
        for record in records
    ]
    pairing = same_arms(dict.fromkeys(("before", "after"), ("none", "native/llguidance")))
    found = summary(renamed, pairing=pairing)
    assert {(pair.arm, pair.against) for pair in found.pairs} == {
        ("after:none", "before:none"),
        ("after:native/llguidance", "before:native/llguidance"),
    }
    assert all(pair.n in (60, 8) for pair in found.pairs)


def test_runs_without_an_arm_in_common_are_compared_all_the_same() -> None:
    assert same_arms({"a": ("none",), "b": ("native/x",)}) == [("b:native/x", "a:none")]


def test_arms_with_records_of_other_examples_are_said_to_have_them() -> None:
    some = slims(10, arm="one")
    assert any("5 are shared by all of 10" in note for note in summary([*some, *slims(5, arm="two")]).notes)
    assert not any("same examples" in note for note in summary([*some, *slims(10, arm="two")]).notes)


def test_interrupted_blocks_and_unlabelled_rows_are_said() -> None:
    records = slims(16, block=[0] * 8 + [1] * 8, session=[0] * 4 + [1] * 12, right=[None, *[True] * 15])
    notes = " ".join(summary(records).notes)
    assert "none: blocks that were interrupted, and are in no throughput: 1." in notes
    assert "1 answered examples have no gold answer" in notes


def test_traces_give_what_no_column_has() -> None:
    labels = {"yes": 0.7, "no": 0.3}
    trace = Trace((-0.1, -2.0), (-0.1, -0.2), (0.9, 0.15), (3, 2), (5, 7), (-0.1, -0.3))
    records = [
        whole(slim(example=f"e{i}", mass=0.5), trace, [5, 6], labels=labels, gold="yes" if i % 2 else "no")
        for i in range(20)
    ]
    found = summary(list(records), lines=lines(records), greedy=True)
    metrics = found.arms["none"]
    assert metrics["label_classwise_ece"].value == pytest.approx(0.2)
    assert metrics["itl_s_p50"].value == pytest.approx(0.1)
    assert metrics["wanted_forbidden"].value == pytest.approx(0.5)
    assert found.wanted["none"].wishes[0].token == 7
    assert set(found.latency["none"]) == {"ttft_s", "tpot_s", "e2e_s", "itl_s"}


def test_without_lines_what_needs_traces_is_missing_and_not_0() -> None:
    found = summary(run(20))
    assert found.arms["none"]["wanted_forbidden"].value is None
    assert found.wanted == {}


def test_the_diagram_and_the_count_without_confidence_are_in_the_summary() -> None:
    records = slims(30, label_confidence=[None] * 10 + [0.9] * 20)
    found = summary(records).reliability["none"]["label"]
    assert (found.n, found.without) == (20, 10)


def test_a_confidence_that_is_no_probability_is_an_error_and_not_a_number() -> None:
    """BC-40."""
    with pytest.raises(ValueError, match="probability"):
        summary(slims(3, label_confidence=1.5))
