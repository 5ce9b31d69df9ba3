"""From what came back to a record."""

from typing import Any

import msgspec
import pytest

from harness.constraint import Constraint, Labels, Regex, json_schema
from harness.judgement import outcome_of
from harness.measures import measures
from harness.record import Part
from harness.request import Completion, Cost, Failure, Finish, Timing, Trace

SCHEMA = json_schema({"type": "object", "properties": {"label": {"enum": ["a", "b"]}}, "required": ["label"]})


def _completion(text: str, finish: Finish = "stop", **changes: Any) -> Completion:
    made = Completion("r", text, (1, 2), finish, Timing(100.0, 0.5, 1.5), 10, 2)
    return msgspec.structs.replace(made, **changes)


def _outcome(constraint: Constraint | None, text: str, finish: Finish = "stop") -> str:
    completion = _completion(text, finish)
    return outcome_of([Part("answer", True, completion)], completion, constraint).outcome


def test_an_answer_cut_by_the_budget_is_truncated_and_not_invalid() -> None:
    """BC-16."""
    assert _outcome(SCHEMA, '{"label": "a"\n\n \n \n', "length") == "truncated"


def test_a_whole_value_followed_by_space_is_that_value_with_a_flag() -> None:
    """BC-16."""
    completion = _completion('{"label": "a"}\n\n \n', "length")
    judged = outcome_of([Part("answer", True, completion)], completion, SCHEMA)
    assert judged.outcome == "valid"
    assert judged.flags == ("whitespace_run",)


def test_a_label_cut_by_the_budget_could_have_become_a_longer_one() -> None:
    """BC-02, BC-16."""
    assert _outcome(Labels(("no", "no evidence")), "no", "length") == "truncated"


def test_a_stop_string_inside_the_answer_is_stopped_early_and_not_invalid() -> None:
    """BC-18."""
    assert _outcome(SCHEMA, '{"quote":"x ', "stop_string") == "stopped_early"


def test_white_space_at_the_ends_does_not_count() -> None:
    assert _outcome(Labels(("yes", "no")), " yes\n") == "valid"
    assert _outcome(Regex(" [0-9]+"), " 12") == "valid"
    assert _outcome(Labels(("yes", "no")), "yes.") == "invalid"


def test_unsupported_is_coverage_and_other_failures_are_failures() -> None:
    for kind, outcome in (("unsupported", "unsupported"), ("processor", "failed"), ("timeout", "failed")):
        parts = [Part("answer", True, Failure("r", kind, "why"))]  # type: ignore[arg-type]
        assert outcome_of(parts, None, SCHEMA).outcome == outcome


def test_a_disagreement_of_the_validators_is_flagged_and_not_called_valid() -> None:
    from harness.constraint import judge

    schema = json_schema({"type": "string", "format": "no-such-format"})
    assert judge(schema, '"x"').unchecked == ("no-such-format",)


def _trace(raw: list[float | None], masked: list[float | None], mass: list[float], allowed: list[int]) -> Trace:
    none = (None,) * len(raw)
    return Trace(tuple(raw), tuple(masked), tuple(mass), tuple(allowed), none, none)


def test_confidences_are_products_over_the_judged_sections() -> None:
    """BC-31: raw and masked probability of the same token, and the mass between them."""
    trace = _trace([-2.1698, 0.0], [-0.3133, 0.0], [0.1562, 1.0], [2, 1])
    parts = [Part("free", False, _completion("x")), Part("answer", True, _completion("yes", trace=trace))]
    measured = measures(parts, frozenset({"answer"}))
    assert measured.raw == pytest.approx(0.1142, abs=1e-4)
    assert measured.path == pytest.approx(0.7311, abs=1e-4)
    assert measured.mass == pytest.approx(0.1562)
    assert measured.forced == 0.5


def test_an_unknown_log_probability_is_no_confidence_and_never_zero() -> None:
    """BC-28."""
    for missing in ([None, -0.1], [float("nan"), -0.1]):
        trace = _trace(missing, missing, [1.0, 1.0], [2, 2])
        measured = measures([Part("answer", True, _completion("yes", trace=trace))], frozenset({"answer"}))
        assert measured.raw is None
        assert measured.path is None
    assert measures([Part("answer", True, _completion("yes"))], frozenset({"answer"})).path is None


def test_times_run_from_the_first_sending_to_the_last_answer() -> None:
    first = _completion("x", timing=Timing(100.0, 0.5, 1.5))
    second = _completion("y", timing=Timing(102.0, 0.1, 0.6))
    measured = measures([Part("a", False, first), Part("b", True, second)], frozenset({"b"}), late_s=0.25)
    assert measured.ttft_s == pytest.approx(0.75)
    assert measured.e2e_s == pytest.approx(2.6 + 0.25)
    assert measured.tpot_s == pytest.approx((2.85 - 0.75) / 3)
    assert measured.sent_s == pytest.approx(99.75)


def test_costs_add_up_and_unknown_stays_unknown() -> None:
    costs = [Cost(forward_s=1.0, steps=2, rows=4.0), Cost(forward_s=2.0, steps=6, rows=8.0)]
    parts = [Part(str(i), True, _completion("x", cost=cost)) for i, cost in enumerate(costs)]
    total = measures(parts, frozenset({"0"})).cost
    assert (total.forward_s, total.steps, total.rows) == (3.0, 8, 7.0)
    assert total.mask_s is None
