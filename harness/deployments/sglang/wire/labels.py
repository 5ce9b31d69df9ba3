"""Answers that are one of a list of labels, and nothing else."""

from collections.abc import Sequence

from harness.constraint import Labels, check, labels_pattern
from harness.deployments.sglang.faults import UnsoundAnswerError
from harness.deployments.sglang.values import ServerGrammar
from harness.request import Finish


def label_grammar(labels: Sequence[str]) -> ServerGrammar:
    """The exact regex of `labels`. Raises `ConstraintError` for labels that are empty, doubled or padded."""
    check(Labels(tuple(labels)))
    return ServerGrammar("regex", labels_pattern(labels))


def said_label(text: str, labels: Sequence[str], finish: Finish) -> str | None:
    """The label that the answer `text` is; None for one that the budget cut, even where what is there is a label that
    begins another one. Raises `UnsoundAnswerError` for a finished answer that is no label: the server did not keep to
    the constraint."""
    if finish == "length":
        return None
    if text not in labels:
        raise UnsoundAnswerError(f"the answer was constrained to {list(labels)}, the server finished with {text!r}")
    return text
