"""Accuracy, validity and the other shares; what is left out of which."""

import pytest
from metrics_records import arm, slims

from harness.metrics.columns import from_slims
from harness.metrics.confidences import judged_answers
from harness.metrics.quality import counts, quality


def test_unlabelled_rows_are_left_out_and_counted() -> None:
    """BC-44: labels 1, -1, 0, null and -100; only rows 0 and 2 have one, and both are right."""
    rows = arm(slims(5, right=[True, None, True, None, None], score=[1.0, None, 1.0, None, None]))
    found = quality(rows)
    assert (found["accuracy"].value, found["accuracy"].n) == (1.0, 2)
    assert found["score"].n == 2
    assert counts(rows).unlabelled == 3


def test_a_truncated_answer_is_not_right_and_not_in_calibration() -> None:
    """BC-16: it stays in the denominator of accuracy, whatever a scorer says of its text."""
    rows = arm(slims(4, outcome=["valid", "truncated", "truncated", "valid"], right=[True, True, False, True]))
    assert (quality(rows)["accuracy"].value, quality(rows)["accuracy"].n) == (0.5, 4)
    assert quality(rows)["score"].value == 0.5
    assert quality(rows)["truncated"].value == 0.5
    assert counts(rows).truncated == 2
    assert judged_answers(rows, "label").n == 2


def test_truncated_is_not_invalid() -> None:
    """BC-16."""
    found = quality(arm(slims(4, outcome=["valid", "truncated", "invalid", "stopped_early"])))
    assert [found[name].value for name in ("validity", "truncated", "invalid", "stopped_early")] == [0.25] * 4


def test_a_failed_request_is_in_no_accuracy_and_no_validity_but_counted() -> None:
    """BC-21."""
    rows = arm(slims(4, outcome=["valid", "failed", "failed", "valid"], right=[True, None, None, False]))
    found = quality(rows)
    assert (found["accuracy"].value, found["accuracy"].n) == (0.5, 2)
    assert (found["validity"].value, found["validity"].n) == (1.0, 2)
    assert (found["failed"].value, counts(rows).failed) == (0.5, 2)
    assert counts(rows).unlabelled == 0


def test_what_an_engine_cannot_express_costs_coverage_and_validity_but_not_compliance_or_accuracy() -> None:
    rows = arm(slims(4, outcome=["valid", "invalid", "unsupported", "unsupported"], right=[True, False, None, None]))
    found = quality(rows)
    assert {name: found[name].value for name in ("coverage", "validity", "compliance", "accuracy")} == {
        "coverage": 0.5, "validity": 0.25, "compliance": 0.5, "accuracy": 0.5,
    }  # fmt: skip


def test_an_arm_whose_every_request_failed_has_no_accuracy() -> None:
    found = quality(arm(slims(3, outcome="failed", right=None, score=None)))
    assert (found["accuracy"].value, found["accuracy"].n) == (None, 0)
    assert (found["coverage"].value, found["coverage"].n) == (None, 0)
    assert found["failed"].value == 1.0


def test_the_outcomes_sum_to_the_records() -> None:
    kinds = ["valid", "invalid", "truncated", "stopped_early", "failed", "unsupported", "valid"]
    found = counts(arm(slims(7, outcome=kinds, attempts=[1, 1, 3, 1, 1, 1, 2], flags=[("a",), ("a", "b"), *[()] * 5])))
    assert found.n == sum(getattr(found, kind) for kind in set(kinds)) == 7
    assert (found.retried, found.flags) == (2, {"a": 2, "b": 1})


def test_partial_credit_is_averaged() -> None:
    found = quality(arm(slims(4, right=[True, False, False, False], score=[1.0, 0.5, 0.25, 0.0])))
    assert found["score"].value == pytest.approx(0.4375)


def test_answers_without_confidence_are_counted_by_confidence() -> None:
    rows = arm(slims(3, label_confidence=[None, 0.5, 0.6], path_confidence=[None, None, 0.1]))
    assert [judged_answers(rows, name).without for name in ("label", "path", "raw")] == [1, 2, 0]


def test_the_order_of_records_changes_nothing() -> None:
    records = slims(9, right=[True, False, None] * 3, outcome=["valid", "truncated", "failed"] * 3)
    assert quality(arm(records)) == quality(arm(records[::-1]))


def test_two_records_of_one_example_in_one_arm_are_refused() -> None:
    with pytest.raises(ValueError, match="more than one record of example 'e0'"):
        arm([*slims(2), *slims(1)])


def test_examples_are_numbered_alike_in_all_arms() -> None:
    columns = from_slims([*slims(3, arm="one"), *slims(3, arm="two")[::-1]], order=("two", "one"))
    assert tuple(columns.arms) == ("two", "one")
    assert columns.arms["one"].example.tolist() == columns.arms["two"].example.tolist() == [0, 1, 2]
    assert not columns.clustered
