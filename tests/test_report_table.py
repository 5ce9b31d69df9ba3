"""The table of arms, on a page, in Markdown and on a terminal."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from report_summaries import diagram, difference, summary

from harness.metrics.estimate import Estimate
from harness.metrics.latency import Distribution, distribution, edges
from harness.report import markdown
from harness.report.chart_latency import chart as latencies
from harness.report.chart_reliability import chart
from harness.report.palette import Look
from harness.report.reading import confidence_of, reading
from harness.report.table import Row, everything, headline
from harness.report.terminal import terminal_table

ACCURACY = Estimate(0.61, 0.54, 0.68, 200)


def _row(metrics: dict[str, dict[str, Estimate]], metric: str) -> Row:
    return next(row for row in headline(summary(metrics)).rows if row.reading.metric == metric)


def test_a_missing_number_is_a_dash_and_never_a_zero() -> None:
    row = _row({"none": {"accuracy": ACCURACY}, "native/x": {}}, "accuracy")
    assert [(cell.value, cell.interval, cell.missing) for cell in row.cells] == [
        ("61.0%", "54.0 to 68.0", False),
        ("–", "", True),
    ]


def test_a_value_that_rests_on_too_little_says_that_it_has_no_interval() -> None:
    row = _row({"none": {"tokens_per_s": Estimate(40.0, None, None, 1)}, "native/x": {}}, "tokens_per_s")
    assert [cell.interval for cell in row.cells] == ["no interval", ""]


def test_a_count_that_all_arms_share_is_said_once() -> None:
    shared = _row({"none": {"accuracy": ACCURACY}, "native/x": {"accuracy": ACCURACY}}, "accuracy")
    assert (shared.n, shared.cells[0].n) == ("200", "")


def test_counts_that_differ_are_said_with_each_value() -> None:
    row = _row({"none": {"accuracy": ACCURACY}, "native/x": {"accuracy": Estimate(0.5, 0.4, 0.6, 1150)}}, "accuracy")
    assert (row.n, [cell.n for cell in row.cells]) == ("", ["200", "1,150"])


def test_times_that_stand_together_have_one_unit() -> None:
    slow, fast = Estimate(1.5, 1.4, 1.6, 9), Estimate(0.02, 0.01, 0.03, 9)
    how = reading("ttft_s_p50", [slow, fast])
    assert (how.title, how.number(1.5), how.number(0.02)) == ("TTFT p50, s", "1.50", "0.0200")


def test_a_cell_names_the_arms_from_which_it_is_established_to_differ() -> None:
    pairs = (difference("b", "a", 0.2, 0.01), difference("c", "a", 0.2, 0.2), difference("c", "b", 0.0, 0.04))
    made = headline(summary({arm: {"accuracy": ACCURACY} for arm in "abc"}, pairs))
    cells = next(row for row in made.rows if row.reading.metric == "accuracy").cells
    assert [cell.differs for cell in cells] == [("B",), ("A", "C"), ("B",)]


def test_a_score_that_says_the_same_as_accuracy_is_not_repeated() -> None:
    metrics = {"none": {"accuracy": ACCURACY, "score": ACCURACY}}
    assert "score" not in [row.reading.metric for row in headline(summary(metrics)).rows]


def test_the_table_of_all_metrics_holds_those_that_some_arm_has() -> None:
    rows = everything(summary({"none": {"accuracy": ACCURACY}, "x": {}})).rows
    assert [row.reading.metric for row in rows] == ["accuracy"]


def test_calibration_is_shown_under_the_path_where_a_task_has_no_labels() -> None:
    assert confidence_of(summary({"none": {"path_ece": ACCURACY, "raw_ece": ACCURACY}})) == "path"


def test_bins_without_answers_are_drawn_as_missing() -> None:
    """BC-40: an empty bin has no mark, where one at zero accuracy would."""
    assert str(chart(Look("none", 0), diagram())).count("<circle") == 1


def test_the_terminal_table_fits_its_width_and_says_the_verdict() -> None:
    metrics = {f"processor/a_package_with_a_long_name.{i}:factory": {"accuracy": ACCURACY} for i in range(5)}
    table = terminal_table(summary(metrics)).split("\n\n")
    assert all(len(line) <= 100 for part in table[:-1] for line in part.splitlines())
    assert "can be compared" in table[-1]


@given(st.text())
def test_text_in_markdown_has_no_markup_no_mention_and_one_line(content: str) -> None:
    written = markdown.text(content)
    assert "\n" not in written
    assert "\r" not in written
    for sign in "<>|`@":
        assert all(written[i - 1] == "\\" or written[i + 1] == "\u200b" for i, c in enumerate(written) if c == sign)


def test_a_quantile_that_so_few_requests_cannot_tell_is_not_drawn_as_one() -> None:
    few, many = (_times(n) for n in (30, 2000))
    assert "longest 1.00 s of 30" in str(latencies("TTFT", [Look("none", 0)], {"none": few}))
    assert "p99 990 ms" in str(latencies("TTFT", [Look("none", 0)], {"none": many}))


def _times(n: int) -> Distribution:
    times = np.linspace(0, 1, n)
    return distribution(times, np.zeros(n, dtype=np.intp), edges([times]))
