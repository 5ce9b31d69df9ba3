"""When an answer ends, and what its text is."""

from collections.abc import Sequence

from harness.deployments.embedded.row import Row
from harness.request import Completion, Finish
from harness.vocabulary import Vocabulary


def ended(row: Row, vocabulary: Vocabulary) -> Completion | None:
    """The completion of `row`, if the token it said last ends it: a stop token, a stop string, or the budget."""
    sampling = row.ticket.request.sampling
    token = row.said[-1].token
    if token in vocabulary.stop_ids:
        return _completion(row, "stop", row.spelled)
    before = len(row.spelled)
    row.spelled += vocabulary.bytes_of([token])
    if (cut := _first_hit(row.spelled, before, sampling.stop)) is not None:
        return _completion(row, "stop_string", row.spelled[:cut])
    if len(row.said) == sampling.max_tokens:
        return _completion(row, "length", row.spelled)
    return None


def _first_hit(spelled: bytes, before: int, stops: Sequence[str]) -> int | None:
    """Where the earliest stop string begins that the last token completed. What came before `before` has no whole one,
    and the prompt is never looked at."""
    wanted = [stop.encode() for stop in stops if stop]
    hits = [spelled.find(stop, max(0, before - len(stop) + 1)) for stop in wanted]
    return min((hit for hit in hits if hit >= 0), default=None)


def _completion(row: Row, finish: Finish, spelled: bytes) -> Completion:
    request = row.ticket.request
    compile_s = None if row.masker is None else row.masker.compile_s(row.id)
    return Completion(
        request_id=row.id,
        text=spelled.decode("utf-8", errors="replace"),
        token_ids=tuple(said.token for said in row.said),
        finish=finish,
        timing=row.timing(),
        prompt_tokens=len(request.prompt_ids),
        completion_tokens=len(row.said),
        cached_tokens=row.cached,
        trace=row.trace(),
        cost=row.spent.cost(compile_s),
    )
