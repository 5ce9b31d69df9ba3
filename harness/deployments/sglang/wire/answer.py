"""An answer of the native `/generate` endpoint, read and checked."""

from typing import Any

import msgspec

from harness.deployments.sglang.faults import UnsoundAnswerError
from harness.deployments.sglang.wire.call import Reply
from harness.request import Finish, Timing


class Meta(msgspec.Struct, frozen=True):
    """What this client reads of `meta_info`. Requests that end while queued lack most of it, so all is optional here
    and checked where it is needed."""

    id: str = ""
    finish_reason: dict[str, Any] | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    input_token_logprobs: Any = None
    input_top_logprobs: Any = None
    output_token_logprobs: Any = None
    output_top_logprobs: Any = None


class Answer(msgspec.Struct, frozen=True):
    """A finished answer: `raw_meta` is `meta_info` as it came."""

    text: str
    output_ids: tuple[int, ...]
    meta: Meta
    raw_meta: dict[str, Any]


class _Body(msgspec.Struct):
    meta_info: dict[str, Any]
    text: str = ""
    output_ids: tuple[int, ...] = ()


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object that `body` is. Raises `UnsoundAnswerError`."""
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError as error:
        start = body[:200].decode("utf-8", errors="replace")
        raise UnsoundAnswerError(f"the server's answer is not a JSON object ({error}): {start!r}") from None


def read_answer(answer: dict[str, Any], prompt_tokens: int) -> Answer:
    """The answer to a prompt of `prompt_tokens` ids. Raises `UnsoundAnswerError` for one that is not finished, or
    where the model saw another number of tokens."""
    try:
        body = msgspec.convert(answer, _Body)
        meta = msgspec.convert(body.meta_info, Meta)
    except msgspec.ValidationError as error:
        raise UnsoundAnswerError(f"the server's answer has another form than expected: {error}") from None
    if meta.finish_reason is None:
        raise UnsoundAnswerError("the answer ends without a finish reason")
    if meta.prompt_tokens != prompt_tokens:
        raise UnsoundAnswerError(f"{prompt_tokens} prompt tokens were sent, the model saw {meta.prompt_tokens}")
    return Answer(body.text, body.output_ids, meta, body.meta_info)


def finish(answer: Answer) -> Finish:
    """Why it ended. Raises `UnsoundAnswerError` for a reason that is no proper end."""
    reason = answer.meta.finish_reason or {}
    match reason.get("type"), reason.get("matched"):
        case "length", _:
            return "length"
        case "stop", "NaN happened":
            raise UnsoundAnswerError("the logits were NaN; the server put an end token in place of the real one")
        case "stop", str():
            return "stop_string"
        case "stop", _:
            return "stop"
        case other, _:
            raise UnsoundAnswerError(f"unknown finish reason {other!r}")


def generated_ids(answer: Answer) -> tuple[int, ...]:
    """The generated ids, the stop token included. Raises `UnsoundAnswerError` where their number is not the server's
    own count (a server with `--incremental-streaming-output` sends pieces, not wholes)."""
    if len(answer.output_ids) != answer.meta.completion_tokens:
        raise UnsoundAnswerError(
            f"the server counted {answer.meta.completion_tokens} tokens and sent {len(answer.output_ids)}; "
            "is it running with --incremental-streaming-output?"
        )
    return answer.output_ids


def timing(reply: Reply, tokens: int) -> Timing:
    """When each of `tokens` tokens of a streamed answer came. Raises `UnsoundAnswerError`."""
    arrivals = [] if reply.stream is None else reply.stream.token_s
    if len(arrivals) != tokens or not arrivals:
        raise UnsoundAnswerError(f"{tokens} tokens came, and the arrival of {len(arrivals)}")
    return Timing(reply.sent_s, arrivals[0], reply.done_s, tuple(arrivals))
