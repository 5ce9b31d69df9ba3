"""The verdict never says more than the adjusted tests allow."""

import re

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from report_summaries import COUNTS, diagram, difference, ratio, summary

from harness.metrics.estimate import Estimate
from harness.metrics.pairs import Pair
from harness.report.comparisons import larger_first
from harness.report.verdict import verdict

ARMS: dict[str, dict[str, Estimate]] = {"none": {}, "native/llguidance": {}, "async/lm_format_enforcer": {}}
COMPARATIVES = re.compile(r"more often|faster|slower|more credit|worse")


def _said(*pairs: Pair) -> str:
    return " ".join(verdict(summary(ARMS, pairs)).sentences)


def test_an_established_difference_is_said_with_its_interval_and_p() -> None:
    said = _said(difference("native/llguidance", "none", 0.24, 0.0001))
    assert (
        "Right more often than none: native/llguidance +24.0 points (+19.0 to +29.0); Holm-adjusted p < 0.001." in said
    )


def test_a_large_difference_that_the_test_does_not_establish_is_not_said() -> None:
    said = _said(difference("native/llguidance", "none", 0.4, 0.051))
    assert not COMPARATIVES.search(said)
    assert "no difference is established between none and native/llguidance" in said


def test_where_nothing_is_established_the_smallest_difference_that_would_have_shown_is_said() -> None:
    said = _said(difference("native/llguidance", "none", 0.01, 0.9))
    assert "Tested alone, a true difference of 7.0 points in accuracy (200 examples) shows in 80% of such runs" in said


def test_a_difference_is_told_from_the_arm_that_has_more_whatever_way_it_was_tested() -> None:
    one = _said(difference("native/llguidance", "none", 0.24, 0.001))
    other = _said(difference("none", "native/llguidance", -0.24, 0.001))
    assert one == other


def test_throughput_is_told_as_a_ratio_over_blocks() -> None:
    said = _said(ratio("none", "async/lm_format_enforcer", 0.5, 0.002))
    assert "Faster, in tokens/s, than none: async/lm_format_enforcer 2.00 times (1.82 to 2.20)" in said


def test_a_longer_time_per_token_is_told_as_slower() -> None:
    said = _said(ratio("async/lm_format_enforcer", "none", 2.0, 0.002, "tpot_s_p50"))
    assert "Slower, in time per output token, than none: async/lm_format_enforcer 2.00 times (1.82 to 2.20)" in said


def test_what_could_not_be_tested_is_not_told_as_tested() -> None:
    said = _said(difference("native/llguidance", "none", 0.4, None))
    assert not COMPARATIVES.search(said)
    assert "Accuracy: no difference could be tested" in said
    assert "is established" not in said


def test_the_largest_p_of_a_sentence_stands_for_all_of_it() -> None:
    said = _said(
        difference("native/llguidance", "none", 0.2, 0.001), difference("async/lm_format_enforcer", "none", 0.1, 0.04)
    )
    assert "largest Holm-adjusted p = 0.040" in said


def test_arms_that_beat_the_same_arm_are_not_ranked_by_how_much() -> None:
    pairs = (
        difference("native/llguidance", "none", 0.1, 0.01),
        difference("async/lm_format_enforcer", "none", 0.9, 0.01),
    )
    said = _said(*pairs, difference("async/lm_format_enforcer", "native/llguidance", 0.8, 0.5))
    assert said.index("native/llguidance +10.0") < said.index("async/lm_format_enforcer +90.0")
    assert "no difference is established between native/llguidance and async/lm_format_enforcer" in said


def test_calibration_is_told_under_the_first_confidence_alone() -> None:
    has_path = {"path_ece": Estimate(0.1, None, None, 9)}
    pairs = tuple(difference("b", "a", 0.2, 0.01, metric) for metric in ("path_brier", "raw_brier"))
    said = verdict(summary({"a": has_path, "b": has_path}, pairs)).established
    assert said == ("Worse by Brier score (path) than a: b +0.200 (+0.150 to +0.250); Holm-adjusted p = 0.010.",)


def test_metrics_that_leave_the_same_arms_open_share_a_sentence() -> None:
    said = _said(difference("native/llguidance", "none", 0.0, 1.0), ratio("native/llguidance", "none", 1.0, 1.0))
    assert "Accuracy and tokens/s: no difference is established between none and native/llguidance." in said
    assert "7.0 points in accuracy (200 examples) and 1.20 times in tokens/s (12 blocks)" in said


def test_answers_that_are_not_of_one_length_are_a_caution_for_rates() -> None:
    def speeds(tokens: float) -> dict[str, Estimate]:
        return {"tokens_per_s": Estimate(tokens, None, None, 9), "requests_per_s": Estimate(2.0, None, None, 9)}

    uneven = verdict(summary({"none": speeds(40), "native/x": speeds(20)})).cautions
    assert any("tokens an answer: none 20 and native/x 10" in caution for caution in uneven)
    assert verdict(summary({"none": speeds(40), "native/x": speeds(38)})).cautions == ()
    faster = (ratio("native/x", "none", 0.5, 0.001),)
    assert "not of one length" in verdict(summary({"none": speeds(40), "native/x": speeds(20)}, faster)).lead
    assert "not of one length" not in verdict(summary({"none": speeds(40), "native/x": speeds(38)}, faster)).lead


def test_an_established_difference_in_validity_leads_where_accuracy_has_none() -> None:
    pairs = (
        difference("native/llguidance", "none", 0.05, 0.9),
        difference("native/llguidance", "none", 0.6, 0.001, "validity"),
    )
    lead = verdict(summary(ARMS, pairs)).lead
    assert lead == (
        "Accuracy: no difference is established. Validity: native/llguidance is valid more often than none."
    )


def test_one_arm_alone_is_compared_with_nothing() -> None:
    assert "nothing to compare" in verdict(summary({"none": {}})).lead


def test_arms_without_common_examples_are_not_compared() -> None:
    assert "none can be compared" in verdict(summary(ARMS)).lead


def test_what_failed_and_what_could_not_be_asked_are_named_apart_before_anybody_believes_the_rest() -> None:
    counts = {"none": COUNTS, "native/llguidance": msgspec.structs.replace(COUNTS, valid=193, failed=4, unsupported=3)}
    cautions = verdict(summary({arm: {} for arm in counts}, (), counts)).cautions
    assert any("failed" in caution and "native/llguidance 4 of 200" in caution for caution in cautions)
    assert any("cannot express" in caution and "native/llguidance 3 of 200" in caution for caution in cautions)
    assert not any("none" in caution.split() for caution in cautions)


def test_an_arm_without_an_answer_is_said_first() -> None:
    counts = {"none": COUNTS, "async/x": msgspec.structs.replace(COUNTS, valid=0, failed=200)}
    assert verdict(summary({arm: {} for arm in counts}, (), counts)).lead == "Every request of async/x failed."


def test_so_few_examples_that_no_difference_could_be_established_are_not_told_as_none_found() -> None:
    few = msgspec.structs.replace(difference("native/llguidance", "none", 1.0, 0.06), n=5, mdd=None)
    said = _said(few)
    assert "Accuracy: no difference could be tested." in said
    assert "too few paired blocks or examples" in said
    assert "no difference is established" not in said


def test_a_difference_on_a_part_of_the_examples_says_on_how_many() -> None:
    found = verdict(summary(ARMS, (_on_part(0.6),)))
    assert "+60.0 points (+55.0 to +65.0, on 150 of 200 examples)" in " ".join(found.established)
    assert not any("undone" in caution for caution in found.cautions)


def test_a_difference_that_the_examples_left_out_could_undo_says_so() -> None:
    cautions = " ".join(verdict(summary(ARMS, (_on_part(0.3),))).cautions)
    assert "could be undone by the others, between native/llguidance and none (50 left out)" in cautions


def _on_part(value: float) -> Pair:
    return msgspec.structs.replace(difference("native/llguidance", "none", value, 0.001), n=150)


def test_answers_that_calibration_leaves_out_are_counted() -> None:
    some = msgspec.structs.replace(diagram(), n=150, without=50)
    sure = {"label_ece": Estimate(0.1, None, None, 150)}
    made = msgspec.structs.replace(
        summary({"none": sure, "b": sure}), reliability={"none": {"label": some}, "b": {"label": diagram()}}
    )
    assert "left out of calibration under it: none 50 of 200." in " ".join(verdict(made).cautions)


def test_notes_of_the_metrics_stand_in_the_verdict() -> None:
    noted = msgspec.structs.replace(summary({"none": {}}), notes=("one block spans two sessions",))
    assert "one block spans two sessions" in verdict(noted).cautions


@given(st.lists(st.tuples(st.floats(-1, 1), st.one_of(st.none(), st.floats(0, 1))), min_size=3, max_size=3))
def test_no_arm_is_called_better_unless_a_test_says_so(drawn: list[tuple[float, float | None]]) -> None:
    names = list(ARMS)
    pairs = [
        difference(names[i], names[j], value, p)
        for (i, j), (value, p) in zip(((1, 0), (2, 0), (2, 1)), drawn, strict=True)
    ]
    made = verdict(summary(ARMS, tuple(pairs)))
    established = sum(p is not None and p < 0.05 for _, p in drawn)
    assert bool(COMPARATIVES.search(" ".join(made.sentences))) == (established > 0)
    assert sum(sentence.count("points (") for sentence in made.established) == established


@given(st.floats(-1, 1), st.floats(0.1, 10))
def test_turning_a_comparison_keeps_its_interval_around_its_value(value: float, times: float) -> None:
    for pair in (difference("a", "b", value, 0.01), ratio("a", "b", times, 0.01)):
        turned = larger_first(pair)
        assert turned.low is not None
        assert turned.value is not None
        assert turned.high is not None
        assert turned.low <= turned.value <= turned.high
