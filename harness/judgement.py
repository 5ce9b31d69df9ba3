"""From what came back to a record: outcome, right or wrong, confidence.

The rules, the same for every arm: white space at the ends does not count; an answer cut by the budget is `truncated`,
which is not right, has no confidence and is no format fault; a complete JSON object or array followed by white space up
to the budget is taken for that value and flagged.
"""

from collections.abc import Mapping, Sequence

import msgspec

from harness.constraint import Constraint, JsonSchema, Verdict, is_trivial, judge
from harness.dataset import Row
from harness.exchange import Exchange
from harness.measures import Measures, measures
from harness.method import arm_name
from harness.record import Outcome, Part, Record
from harness.request import Completion, Failure
from harness.scorers import Score, score
from harness.task import Task


class Judged(msgspec.Struct, frozen=True):
    """What the oracle says of an exchange."""

    outcome: Outcome
    reason: str = ""
    flags: tuple[str, ...] = ()


def record_of(
    task: Task, exchange: Exchange, labels: Mapping[str, float] | None, block: int, session: int, late_s: float = 0.0
) -> Record:
    """The record of one exchange. `labels` are the normalised unmasked probabilities of the labels in front of the
    answer section; None where the task has no labels or the answer section was not reached."""
    row, parts = exchange.question.row, exchange.parts
    constraint = task.constraints.get(row.id)
    answer = answer_of(task, parts)
    text = answer.text if answer is not None else ""
    judged = outcome_of(parts, answer, constraint)
    scored = _scored(task, judged.outcome, text, row)
    ended = judged.outcome in ("valid", "invalid")
    measured: Measures = measures(parts, task.judged_names, late_s)
    return Record(
        arm=arm_name(exchange.method),
        example=row.id,
        cluster=row.cluster,
        block=block,
        session=session,
        outcome=judged.outcome,
        right=scored.right if scored is not None else None,
        score=scored.score if scored is not None else None,
        label_confidence=labels.get(text.strip()) if labels is not None and ended else None,
        path_confidence=measured.path if ended else None,
        raw_confidence=measured.raw if ended else None,
        mass=measured.mass,
        forced=measured.forced,
        tokens=measured.tokens,
        prompt_tokens=measured.prompt_tokens,
        cached_tokens=measured.cached_tokens,
        sent_s=measured.sent_s,
        ttft_s=measured.ttft_s,
        e2e_s=measured.e2e_s,
        tpot_s=measured.tpot_s,
        cost=measured.cost,
        trivial=constraint is not None and is_trivial(constraint),
        attempts=max(part.result.attempts for part in parts),
        flags=judged.flags,
        text=text,
        answer=scored.answer if scored is not None else None,
        gold=row.gold,
        reason=judged.reason,
        labels=dict(labels) if labels is not None else None,
        constraint=msgspec.to_builtins(constraint),
        parts=parts,
    )


def answer_of(task: Task, parts: Sequence[Part]) -> Completion | None:
    """What came back for the answer section; None where it was not reached or failed."""
    for part in parts:
        if part.section == task.answer_section.name and isinstance(part.result, Completion):
            return part.result
    return None


def outcome_of(parts: Sequence[Part], answer: Completion | None, constraint: Constraint | None) -> Judged:
    """How the answer ended and whether the oracle accepts it."""
    failure = next((part.result for part in parts if isinstance(part.result, Failure)), None)
    if failure is not None:
        outcome: Outcome = "unsupported" if failure.failure == "unsupported" else "failed"
        return Judged(outcome, f"{failure.failure}: {failure.message}")
    if answer is None:
        return Judged("failed", "the answer section was not reached")
    if answer.finish == "length":
        if constraint is not None and _is_complete_json(constraint, answer.text):
            return Judged("valid", "", ("whitespace_run",))
        return Judged("truncated", f"the budget of {answer.completion_tokens} tokens ended it")
    if constraint is None:
        return Judged("valid")
    if answer.finish == "stop_string":
        return Judged("stopped_early", "a stop string ended it")
    verdict = _verdict(constraint, answer.text)
    return Judged("valid" if verdict.accepted else "invalid", verdict.reason, _flags(verdict))


def _verdict(constraint: Constraint, text: str) -> Verdict:
    """White space at the ends does not count, unless the constraint itself asks for it."""
    stripped = judge(constraint, text.strip())
    if stripped.accepted or text == text.strip():
        return stripped
    whole = judge(constraint, text)
    return whole if whole.accepted else stripped


def _flags(verdict: Verdict) -> tuple[str, ...]:
    flags = tuple(f"format not checked: {name}" for name in verdict.unchecked)
    return (*flags, f"validators disagree: {verdict.disagreement}") if verdict.disagreement else flags


def _is_complete_json(constraint: Constraint, text: str) -> bool:
    """Whether a text cut by the budget is nevertheless a whole JSON object or array (which nothing could prolong)."""
    bare = text.strip()
    return isinstance(constraint, JsonSchema) and bare.endswith(("}", "]")) and judge(constraint, bare).accepted


def _scored(task: Task, outcome: Outcome, text: str, row: Row) -> Score | None:
    """None where there is no right answer to compare with, or no answer came back."""
    if row.gold is None or outcome in ("failed", "unsupported"):
        return None
    if outcome in ("truncated", "stopped_early"):
        return Score(None, False, 0.0)
    return score(task.config.scorer, text, row.gold, row.columns)
