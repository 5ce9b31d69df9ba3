"""What every deployment refuses before it reaches the model: one request's fault is that request's failure."""

from collections.abc import Sequence

from harness.deployment import DeploymentInfo
from harness.method import Unconstrained
from harness.request import FailureKind, Request, Sampling
from harness.vocabulary import Vocabulary


def refusal(request: Request, info: DeploymentInfo, vocabulary: Vocabulary) -> tuple[FailureKind, str] | None:
    """Why `request` cannot be answered, or None."""
    prompt, budget = len(request.prompt_ids), request.sampling.max_tokens
    if problem := _ids_problem(request.prompt_ids, vocabulary) or _sampling_problem(request.sampling):
        return "rejected", problem
    if request.constraint is not None and request.sampling.stop and not isinstance(request.method, Unconstrained):
        return "rejected", f"a constrained request carries no stop strings; it has {request.sampling.stop}"
    if prompt + budget > info.context:
        return "too_long", f"prompt {prompt} and budget {budget} are {prompt + budget} tokens; room for {info.context}"
    return None


def check_scoring(
    prompt: Sequence[int], continuations: Sequence[Sequence[int]], info: DeploymentInfo, vocabulary: Vocabulary
) -> None:
    """Raises `ValueError` for an empty prompt or continuation, for ids that are no tokens of the model, and for more
    tokens than its context holds."""
    for ids in (prompt, *continuations):
        if problem := _ids_problem(ids, vocabulary):
            raise ValueError(problem)
    longest = len(prompt) + max(map(len, continuations), default=0)
    if longest > info.context:
        raise ValueError(f"prompt and continuation are {longest} tokens; the context holds {info.context}")


def _ids_problem(ids: Sequence[int], vocabulary: Vocabulary) -> str:
    if not ids:
        return "there are no tokens"
    known = len(vocabulary.tokens)
    outside = next((i for i in ids if not 0 <= i < known), None)
    return "" if outside is None else f"id {outside} is no token of the model: its ids are 0 to {known - 1}"


def _sampling_problem(sampling: Sampling) -> str:
    if sampling.max_tokens < 1:
        return f"max_tokens is {sampling.max_tokens}; at least 1 is wanted"
    if not 0.0 <= sampling.temperature < float("inf"):
        return f"temperature is {sampling.temperature}; 0 or more is wanted"
    if not 0.0 < sampling.top_p <= 1.0:
        return f"top_p is {sampling.top_p}; more than 0 and at most 1 is wanted"
    return f"top_k is {sampling.top_k}; 0 (all tokens) or more is wanted" if sampling.top_k < 0 else ""
