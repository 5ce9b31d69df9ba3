"""SGLang's protocol as bytes and values: no server, no socket, no clock."""

import json
import math
from itertools import count, pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.constraint import Labels, accepts
from harness.deployments.sglang import (
    BackendError,
    ChatMessage,
    RejectedError,
    Retries,
    TimedOutError,
    TokenLogprob,
    UnavailableError,
    UnsoundAnswerError,
)
from harness.deployments.sglang.deliver import deliver
from harness.deployments.sglang.flows import Flows
from harness.deployments.sglang.server import without_secrets
from harness.deployments.sglang.wire import encode, join
from harness.deployments.sglang.wire.answer import finish, generated_ids, read_answer
from harness.deployments.sglang.wire.call import Call, Lost, Outcome, Reply
from harness.deployments.sglang.wire.errors import read_denial, read_refusal
from harness.deployments.sglang.wire.extra import Extra, sorted_extra
from harness.deployments.sglang.wire.labels import label_grammar, said_label
from harness.deployments.sglang.wire.logprobs import output_tokens, scored_tokens
from harness.deployments.sglang.wire.retry import retry_after_s
from harness.deployments.sglang.wire.sse import EventDecoder
from harness.deployments.sglang.wire.stream import AnswerStream
from harness.errors import ConfigError, ConstraintError
from harness.request import Sampling

PROMPT = (5, 6)


def meta(**fields: Any) -> dict[str, Any]:
    return {"id": "r", "finish_reason": {"type": "stop", "matched": 2}, "prompt_tokens": len(PROMPT)} | fields


def reply(answer: Any, status: int = 200, **headers: str) -> Reply:
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, named, body, None, 0.0, 1.0)


def event(answer: Any) -> bytes:
    return b"data: " + json.dumps(answer, ensure_ascii=False).encode() + b"\n\n"


def streamed(*pieces: bytes, every_s: float = 1.0) -> Reply:
    stream = AnswerStream()
    for at, piece in enumerate(pieces, start=1):
        stream.feed(piece, at * every_s)
    return Reply(200, {}, b"", stream, 0.0, len(pieces) * every_s)


def drive(flow: Any, outcomes: list[Outcome]) -> tuple[list[Call], Any]:
    """What a flow sends when the world answers with `outcomes`, and its result."""
    calls = [next(flow)]
    for outcome in outcomes:
        try:
            calls.append(flow.send(outcome))
        except StopIteration as done:
            return calls, done.value
    raise AssertionError(f"the flow wants more than {len(outcomes)} outcomes")


def ids() -> Any:
    numbers = count()
    return lambda: f"id-{next(numbers):04}"


def send(outcomes: list[Outcome], retries: Retries | None = None) -> tuple[list[Call], Any]:
    flow = deliver(lambda rid: Call("POST", "/generate", rid.encode()), retries or Retries(), ids())
    return drive(flow, outcomes)


# Streams


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(places)]


@given(
    st.lists(st.text(alphabet=st.characters(exclude_characters="\n\r", exclude_categories=("Cs",))), max_size=6),
    st.lists(st.integers(0, 10_000), max_size=30),
    st.sampled_from(["\n", "\r\n"]),
)
def test_events_are_the_same_however_their_bytes_are_split(texts: list[str], cuts: list[int], end: str) -> None:
    """BC-19: splits inside a character and inside `data: ` change nothing."""
    data = "".join(f": note{end}event: x{end}data: {text}{end}{end}" for text in texts).encode()
    decoder = EventDecoder()
    events = [event for piece in split(data, cuts) for event in decoder.feed(piece)]
    assert [event.decode() for event in events] == texts
    assert decoder.leftover == b""


def test_an_event_is_only_given_once_it_is_whole() -> None:
    decoder = EventDecoder()
    assert decoder.feed(b"data: {}\n") == []
    assert decoder.feed(b"\n") == [b"{}"]


def test_events_may_end_in_either_way_in_one_stream() -> None:
    assert EventDecoder().feed(b"data: a\r\n\r\ndata: b\n\ndata: c\r\n\r\n") == [b"a", b"b", b"c"]


SMILES = ["", "🙂", "🙂", "🙂🙂", "🙂🙂"]
"""The text after each of five tokens (F0 9F, 99 82, F0 9F 99, 82, stop): a server shows whole characters only."""


def smile_events() -> bytes:
    wholes = [
        {"text": text, "output_ids": [7] * n, "meta_info": meta(completion_tokens=n, finish_reason=None)}
        for n, text in enumerate(SMILES, start=1)
    ]
    wholes[-1]["meta_info"] = meta(completion_tokens=5)
    return b"".join(event(whole) for whole in wholes) + b"data: [DONE]\n\n"


@given(st.lists(st.integers(0, 10_000), max_size=40))
def test_a_streamed_text_is_the_whole_text_and_tokens_are_counted_by_the_server(cuts: list[int]) -> None:
    """BC-19: no U+FFFD, five tokens though only two pieces of text came."""
    stream = AnswerStream()
    for at, piece in enumerate(split(smile_events(), cuts)):
        stream.feed(piece, float(at))
    answer = msgspec.json.decode(stream.last)
    assert (answer["text"], stream.whole) == ("🙂🙂", True)
    assert len(stream.token_s) == 5
    assert stream.token_s == sorted(stream.token_s)


def test_the_first_token_arrives_with_the_first_token_event_though_it_has_no_text() -> None:
    """BC-19."""
    stream = AnswerStream()
    for at, piece in enumerate(smile_events().split(b"\n\n")):
        stream.feed(piece + b"\n\n", 10.0 + at)
    assert stream.token_s == [10.0, 11.0, 12.0, 13.0, 14.0]


def test_tokens_of_one_event_share_its_time_when_events_are_skipped() -> None:
    one, five = ({"text": "", "meta_info": {"completion_tokens": n}} for n in (1, 5))
    stream = AnswerStream()
    stream.feed(event(one), 1.0)
    stream.feed(event(five), 2.0)
    assert stream.token_s == [1.0, 2.0, 2.0, 2.0, 2.0]


def test_an_event_that_is_not_json_is_an_error_that_shows_it() -> None:
    with pytest.raises(UnsoundAnswerError, match="half an eve"):
        AnswerStream().feed(b"data: half an eve\n\n", 0.0)


# Errors

SHAPES = [
    (400, b'{"error":"unknown field `bogus`"}', "unknown field `bogus`", ""),
    (
        400,
        b'{"object":"error","message":"JSON decode","type":"Bad Request","code":400}',
        "JSON decode",
        "Bad Req",
    ),
    (400, b'{"error":{"message":"Failed to compile regex grammar: no"}}', "Failed to compile regex grammar: no", ""),
    (503, b'{"object":"error","message":"The request queue is full.","type":"503","code":503}', "queue is full", "503"),
    (500, b"Internal Server Error", "Internal Server Error", ""),
    (404, b'{"detail":"Not Found"}', "Not Found", ""),
    (502, b"", "the server gave no reason", ""),
]


@pytest.mark.parametrize(("status", "body", "message", "kind"), SHAPES)
def test_every_shape_of_a_refusal_is_read(status: int, body: bytes, message: str, kind: str) -> None:
    fault = read_refusal(reply(body, status))
    assert fault is not None
    assert (fault.status, fault.server_kind.startswith(kind)) == (status, True)
    assert message in fault.message


def aborted(message: str, status: int | None) -> dict[str, Any]:
    reason = {"type": "abort", "message": message, "status_code": status}
    return {"text": "partial", "meta_info": meta(finish_reason=reason)}


DENIALS = [
    ({"error": {"message": "too long", "type": "invalid_request_error", "code": 400}}, 400, "too long", False),
    (aborted("bad", 400), 400, "bad", False),
    (aborted("full", 429), 429, "full", True),
    (aborted("Aborted", None), None, "Aborted", True),
]


@pytest.mark.parametrize(("answer", "status", "message", "transient"), DENIALS)
def test_a_denial_with_http_200_is_read(answer: Any, status: int | None, message: str, transient: bool) -> None:
    """BC-21: an abort is never an answer, whatever the HTTP code."""
    fault = read_denial(answer)
    assert fault is not None
    assert (fault.status, fault.message, fault.transient) == (status, message, transient)


def test_a_finished_answer_is_no_denial() -> None:
    assert read_denial({"text": "yes", "meta_info": meta()}) is None


# Retries

YES = {"text": "yes", "output_ids": [9, 2], "meta_info": meta(completion_tokens=2)}
FULL = {"text": "", "meta_info": {"finish_reason": {"type": "abort", "status_code": 429, "message": "queue is full"}}}
ABORTED = aborted("Aborted", None)


def test_an_overloaded_server_is_asked_again_with_growing_waits_until_it_answers() -> None:
    """BC-21: an abort in HTTP 200, a 503 that asks for 2 s, an aborted stream, then the answer."""
    outcomes = [
        reply(FULL),
        reply({"error": "queue timeout"}, 503, retry_after="2"),
        streamed(event({"text": "par", "meta_info": meta(finish_reason=None)}), event(ABORTED), b"data: [DONE]\n\n"),
        reply(YES),
    ]
    calls, delivered = send(list(outcomes))
    assert (delivered.answer["text"], delivered.attempts) == ("yes", 4)
    waits = [call.wait_s for call in calls]
    assert waits == sorted(set(waits))
    assert waits[2] >= 2.0


def test_each_attempt_has_an_id_of_its_own() -> None:
    calls, delivered = send([reply(FULL), reply(FULL), reply(YES)])
    assert [call.body for call in calls] == [b"id-0000", b"id-0001", b"id-0002"]
    assert delivered.request_id == "id-0002"


def test_a_request_fails_when_its_attempts_run_out() -> None:
    """BC-21."""
    with pytest.raises(UnavailableError, match="queue is full") as caught:
        send([reply(FULL)] * 9, Retries(attempts=3))
    assert (caught.value.attempts, caught.value.status) == (3, 429)


@given(st.integers(400, 499))
def test_of_the_4xx_only_the_passing_ones_are_sent_again(status: int) -> None:
    """BC-21."""
    refusals: list[Outcome] = [reply(b"no", status)] * 3
    with pytest.raises(BackendError) as caught:
        send(refusals, Retries(attempts=3))
    passing = status in (408, 409, 425, 429)
    assert caught.value.attempts == (3 if passing else 1)
    assert isinstance(caught.value, UnavailableError if passing else RejectedError)


def test_a_request_that_never_returns_ends_as_timed_out_after_its_attempts() -> None:
    """BC-22."""
    with pytest.raises(TimedOutError, match="no complete answer within 30 s after 2 attempts"):
        send([Lost("timeout", "no complete answer within 30 s")] * 5, Retries(attempts=2))


def test_a_stream_that_breaks_off_is_sent_again() -> None:
    cut = streamed(event({"text": "ye", "meta_info": meta(completion_tokens=1, finish_reason=None)}))
    _, delivered = send([cut, Lost("connection", "reset"), reply(YES)])
    assert (delivered.answer["text"], delivered.attempts) == ("yes", 3)


def test_a_server_that_asks_for_more_time_than_there_is_is_not_waited_for() -> None:
    with pytest.raises(UnavailableError) as caught:
        send([reply(b"later", 503, retry_after="3600")] * 9, Retries(longest_wait_s=30.0))
    assert caught.value.attempts == 1


@given(st.integers(2, 12), st.floats(0.001, 2.0))
def test_waits_grow_to_their_bound_and_the_attempts_are_bounded(attempts: int, first_s: float) -> None:
    retries = Retries(attempts, first_s, longest_wait_s=30.0)
    waits = [retries.wait_s(failed, None) for failed in range(1, attempts + 1)]
    assert waits[-1] is None
    known = [wait for wait in waits if wait is not None]
    assert known == sorted(known)
    assert max(known) <= 30.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "Mon, 30 Nov 2026 10:00:09 GMT", "date": "Mon, 30 Nov 2026 10:00:00 GMT"}, 9.0),
        ({"retry-after": "Mon, 30 Nov 2026 10:00:09 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_seconds_and_as_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers) == seconds


# Answers


def test_an_answer_says_why_it_ended() -> None:
    reasons = [{"type": "stop", "matched": 2}, {"type": "stop", "matched": "\n"}, {"type": "length", "length": 4}]
    answers = [read_answer({"text": "", "meta_info": meta(finish_reason=reason)}, 2) for reason in reasons]
    assert [finish(answer) for answer in answers] == ["stop", "stop_string", "length"]


def test_nan_logits_are_a_fault_and_no_stop() -> None:
    nan = read_answer({"text": "", "meta_info": meta(finish_reason={"type": "stop", "matched": "NaN happened"})}, 2)
    with pytest.raises(UnsoundAnswerError, match="NaN"):
        finish(nan)


def test_a_prompt_that_the_model_saw_with_another_length_is_an_error() -> None:
    """BC-24: a second begin token would show here."""
    with pytest.raises(UnsoundAnswerError, match="2 prompt tokens were sent, the model saw 3"):
        read_answer({"text": "", "meta_info": meta(prompt_tokens=3)}, 2)


def test_an_answer_without_a_finish_reason_is_an_error() -> None:
    with pytest.raises(UnsoundAnswerError, match="finish reason"):
        read_answer({"text": "", "meta_info": meta(finish_reason=None)}, 2)


def test_a_server_that_streams_pieces_instead_of_wholes_is_found_out() -> None:
    with pytest.raises(UnsoundAnswerError, match="incremental-streaming-output"):
        generated_ids(read_answer({"text": "c", "output_ids": [3], "meta_info": meta(completion_tokens=9)}, 2))


# Log-probabilities


@pytest.mark.parametrize("rows", [[], [[None, 33, "A"]], None, [[-1.2, 34, "B"]]])
def test_a_missing_score_is_an_error_and_never_a_number(rows: Any) -> None:
    """BC-28: an empty list, a null value, no list at all; and a value of another token."""
    with pytest.raises(UnsoundAnswerError, match="unscored"):
        scored_tokens(rows, [33])


@pytest.mark.parametrize("rows", [[[-1.2, 33, "A"]], [[None, 32, ":"], [-1.2, 33, "A"]]])
def test_a_score_is_read_with_or_without_the_token_before_it(rows: Any) -> None:
    """BC-28: SGLang puts that token in front, without a value."""
    assert [token.logprob for token in scored_tokens(rows, [33])] == [-1.2]


def test_the_last_id_of_a_vocabulary_is_reported_as_0_and_scored_as_itself() -> None:
    (token,) = scored_tokens([[None, 198, None], [-28.0, 0, None]], [49151])
    assert (token.id, token.logprob) == (49151, -28.0)


TOP = [[-0.012, 425, " B"], [-5.1, 33, "B"], [-8.0, 240, "�"], [-9.0, 241, "�"], [-12.6, 7, "\tB"]]


def test_tokens_with_equal_texts_stay_apart() -> None:
    """BC-30: all five entries are kept, so that stripping and summing gives P(B) = 0.99417, and the exact text
    0.00610."""
    (token,) = output_tokens([[-0.012, 425, " B"]], [TOP], [425], with_top=True, greedy=True)
    assert [candidate.id for candidate in token.top] == [425, 33, 240, 241, 7]
    stripped = sum(math.exp(c.logprob) for c in token.top if c.text is not None and c.text.strip() == "B")
    exact = sum(math.exp(c.logprob) for c in token.top if c.text == "B")
    assert stripped == pytest.approx(0.99417, abs=1e-5)
    assert exact == pytest.approx(0.00610, abs=1e-5)


def test_a_row_that_belongs_to_another_token_gives_no_confidence() -> None:
    """BC-32: in a chunk of three tokens, all got the first one's alternatives."""
    rows = [[-0.1, 11, "pos"], [-0.02, 12, "itive"], [0.0, 2, "</s>"]]
    tops = [[[-0.1, 11, "pos"], [-2.4, 20, "neg"]]] * 3
    tokens = output_tokens(rows, tops, [11, 12, 2], with_top=True, greedy=True)
    assert [token.aligned for token in tokens] == [True, False, False]
    assert [token.confidence for token in tokens] == [math.exp(-0.1), None, None]


def test_a_row_that_gives_its_token_another_value_is_misaligned() -> None:
    """BC-32: the two must agree to 1e-6."""
    top = [[[-0.1, 11, "pos"], [-2.4, 20, "neg"]]]
    (sampled,) = output_tokens([[-2.3, 20, "neg"]], top, [20], with_top=True, greedy=False)
    assert not sampled.aligned


@given(st.lists(st.floats(-20.0, 0.0), min_size=2, max_size=8, unique=True), st.integers(1, 8), st.data())
def test_a_true_row_is_never_called_misaligned(values: list[float], k: int, data: st.DataObject) -> None:
    """BC-32 the other way round: whatever was sampled, its own top row passes."""
    ranked = sorted(((value, token) for token, value in enumerate(values)), reverse=True)
    value, token = data.draw(st.sampled_from(ranked))
    rows = [[value, token, None]]
    top = [[[v, t, None] for v, t in ranked[:k]]]
    (read,) = output_tokens(rows, top, [token], with_top=True, greedy=token == ranked[0][1])
    assert read.aligned


def test_a_greedy_choice_among_equals_may_be_missing_from_a_full_row() -> None:
    (token,) = output_tokens([[-0.7, 4, None]], [[[-0.7, 3, None]]], [4], with_top=True, greedy=True)
    assert token.aligned


@pytest.mark.parametrize("rows", [None, [], [[-0.1, 11, None], [-0.2, 12, None]], [[None, 11, None]]])
def test_generated_tokens_without_a_value_each_are_an_error(rows: Any) -> None:
    """BC-32: as many log-probabilities as tokens."""
    with pytest.raises(UnsoundAnswerError):
        output_tokens(rows, None, [11], with_top=False, greedy=True)


def test_a_missing_top_row_is_an_error() -> None:
    with pytest.raises(UnsoundAnswerError, match="output_top_logprobs"):
        output_tokens([[-0.1, 11, None]], [None], [11], with_top=True, greedy=True)


# Labels

label = st.text(min_size=1, max_size=12).map(str.strip).filter(bool)


@given(st.lists(label, min_size=1, max_size=6, unique=True), st.text(max_size=12))
def test_the_regex_of_labels_means_the_labels_and_nothing_else(labels: list[str], other: str) -> None:
    import re

    pattern = label_grammar(labels).text
    assert all(re.fullmatch(pattern, text) for text in labels)
    assert (re.fullmatch(pattern, other) is not None) == accepts(Labels(tuple(labels)), other)


def test_a_label_that_begins_another_one_is_only_said_when_the_answer_ended_there() -> None:
    assert said_label("no", ["no", "no idea"], "stop") == "no"
    assert said_label("no", ["no", "no idea"], "length") is None


def test_a_server_that_leaves_the_labels_is_found_out() -> None:
    with pytest.raises(UnsoundAnswerError, match="'maybe'"):
        said_label("maybe", ["yes", "no"], "stop")


@pytest.mark.parametrize("labels", [[], ["yes", " yes"], ["yes", "yes"], [" "]])
def test_labels_that_cannot_be_told_apart_are_refused(labels: list[str]) -> None:
    with pytest.raises(ConstraintError):
        label_grammar(labels)


# Requests


def generate_body(extra: Extra | None = None, **fields: Any) -> dict[str, Any]:
    sampling = encode.sampling_fields(Sampling(max_tokens=4))
    asked = encode.Generate(PROMPT, sampling, **fields)
    body: dict[str, Any] = json.loads(encode.generate_body(asked, extra or Extra(), "r" * 32))
    return body


def test_a_generation_leaves_nothing_to_the_servers_defaults() -> None:
    sampling = generate_body()["sampling_params"]
    neutral = {"top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
    assert sampling | neutral | {"temperature": 0.0, "max_new_tokens": 4} == sampling


def test_scores_begin_one_token_before_the_completion() -> None:
    """BC-27, BC-28: ids are joined as ids, and the completion's first token has a value."""
    body = json.loads(encode.score_body(encode.Score((1, 2, 3), (8, 9)), Extra(), "r"))
    assert (body["input_ids"], body["logprob_start_len"]) == ([1, 2, 3, 8, 9], 2)
    assert body["sampling_params"]["max_new_tokens"] == 0


@pytest.mark.parametrize(("prompt", "completion"), [((), (1,)), ((1,), ()), ((1,), (-1,))])
def test_ids_that_no_server_can_take_are_refused(prompt: tuple[int, ...], completion: tuple[int, ...]) -> None:
    with pytest.raises(ValueError):
        encode.score_body(encode.Score(prompt, completion), Extra(), "r")


def test_extra_fields_go_where_the_server_reads_them() -> None:
    extra = sorted_extra(
        {"chat_template_kwargs": {"enable_thinking": False}, "priority": 3, "sampling_params": {"min_p": 0.1}}
    )
    rendered = json.loads(encode.render_body([ChatMessage("user", "hi")], "m", extra))
    generated = generate_body(extra)
    assert rendered["chat_template_kwargs"] == {"enable_thinking": False}
    assert (generated["priority"], generated["sampling_params"]["min_p"]) == (3, 0.1)
    assert "chat_template_kwargs" not in generated


@pytest.mark.parametrize("field", ["regex", "top_p", "temperature", "no_such_field", "rid", "input_ids"])
def test_an_extra_field_that_the_server_would_ignore_is_refused(field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        sorted_extra({field: 1})


def test_an_extra_field_that_the_client_sets_is_refused_when_the_client_is_made() -> None:
    extra = sorted_extra({"sampling_params": {"temperature": 0.7}})
    with pytest.raises(ConfigError, match=r"extra_body.sampling_params: 'temperature'"):
        Flows("m", 16, extra, ids())


def test_secrets_are_left_out_of_what_a_server_says_at_any_depth() -> None:
    info = {
        "api_key": "s3cret",
        "tp_size": 1,
        "internal_states": [{"admin_api_key": "s3cret", "ssl_keyfile_password": None}],
    }
    shown = without_secrets(info)
    assert "s3cret" not in json.dumps(shown)
    assert shown["tp_size"] == 1


# Joins


def test_a_continuation_is_tokenized_alone_so_that_no_token_spans_the_join() -> None:
    """BC-27: `Gre` + `en` is [1] + [2], never the token for `Green`."""
    ways = join.candidates((2,), (8,), (8, 2))
    assert ways == [(2,)]
    assert join.exact(ways, "en", "Gre", ["Green"]) == (2,)


def test_a_tokenizer_that_puts_a_space_before_lone_text_is_seen_through() -> None:
    """BC-27, BC-05: `▁yes` alone reads back as ` yes`; behind an anchor it is `yes`."""
    alone, anchor, anchored = (5,), (7, 13), (7, 13, 6)
    ways = join.candidates(alone, anchor, anchored)
    assert join.exact(ways, "yes", "Label:", ["Label: yes", "Label:yes"]) == (6,)


def test_a_text_that_cannot_be_continued_exactly_is_an_error() -> None:
    with pytest.raises(UnsoundAnswerError, match="reads back as"):
        join.exact([(5,)], "yes", "Label:", ["Label: yes"])


def test_a_token_without_a_trusted_row_has_no_confidence() -> None:
    assert TokenLogprob(1, "a", -0.5).confidence == math.exp(-0.5)
    assert TokenLogprob(1, "a", -0.5, aligned=False).confidence is None
