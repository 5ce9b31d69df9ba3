"""The SGLang client over real sockets, against a server that can be told to misbehave. Both faces, one behaviour."""

import asyncio
import inspect
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sglang_double import Double, LongestMatch, Response, answer, serving

from harness.deployments.sglang import (
    BackendError,
    ChatMessage,
    Generated,
    LLMBackend,
    RejectedError,
    Retries,
    SGLangBackend,
    TimedOutError,
    UnavailableError,
    UnsoundAnswerError,
)
from harness.errors import ConfigError, DeploymentError
from harness.request import Sampling

TOKENS = LongestMatch(
    {
        "<s>": 0,
        "Gre": 1,
        "en": 2,
        "Green": 3,
        "Label": 4,
        ":": 5,
        " yes": 6,
        "yes": 7,
        " ": 8,
        ": ": 9,
        "no": 10,
        "\n": 11,
    }
)
ASK = [ChatMessage("user", "Label:")]
FAST = Retries(attempts=5, first_wait_s=0.001)


def say(text: str) -> Callable[[dict[str, Any]], Response]:
    return lambda body: answer(text, [7, 2], body["input_ids"])


def script(*responses: Response | Callable[[dict[str, Any]], Response]) -> Callable[[dict[str, Any]], Response]:
    """One response after the other."""
    left = iter(responses)

    def generate(body: dict[str, Any]) -> Response:
        response = next(left)
        return response if isinstance(response, Response) else response(body)

    return generate


class Sync:
    """The client's synchronous face, called as tests like it."""

    def __init__(self, backend: SGLangBackend) -> None:
        self.backend = backend

    def call(self, name: str, *args: Any, **options: Any) -> Any:
        return getattr(self.backend, name)(*args, **options)

    def close(self) -> None:
        self.backend.close()


class Async(Sync):
    """Its asynchronous face, in one event loop."""

    def __init__(self, backend: SGLangBackend) -> None:
        super().__init__(backend)
        self._runner = asyncio.Runner()

    def call(self, name: str, *args: Any, **options: Any) -> Any:
        return self._runner.run(getattr(self.backend, f"a{name}")(*args, **options))

    def close(self) -> None:
        self._runner.run(self.backend.aclose())
        self._runner.close()


@pytest.fixture(params=[Sync, Async], ids=["sync", "async"])
def talk(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Makes a client of a double, with either face."""
    open_faces: list[Sync] = []

    def make(double: Double, *, retries: Retries = FAST, model: str = "double", **options: Any) -> Sync:
        backend = SGLangBackend(model, double.url, **options)
        backend.retries = retries
        face: Sync = request.param(backend)
        open_faces.append(face)
        return face

    yield make
    for face in open_faces:
        face.close()


@contextmanager
def double(generate: Callable[[dict[str, Any]], Response] = say("yes"), **options: Any) -> Iterator[Double]:  # noqa: B008
    with serving(Double(options.pop("tokenizer", TOKENS), generate, **options)) as running:
        yield running


def event(text: str, ids: list[int], prompt: list[int], end: Any = None) -> bytes:
    meta = {"finish_reason": end, "prompt_tokens": len(prompt), "completion_tokens": len(ids)}
    return b"data: " + json.dumps({"text": text, "output_ids": ids, "meta_info": meta}).encode() + b"\n\n"


STOP = {"type": "stop", "matched": 2}
DONE = b"data: [DONE]\n\n"


# The promise


def test_the_public_names_and_parameters_are_kept() -> None:
    """Users write against these; they change only with a new major version."""
    chat = "(self, messages, *, temperature=0.0, constrain_labels=None, logprobs=False, top_logprobs=5)"
    promised = {
        "__init__": "(self, model, base_url='http://localhost:30000/v1', *, api_key=None, timeout=120.0,"
        " max_tokens=256, extra_body=None)",
        "chat": chat,
        "achat": chat,
        "score": "(self, messages, completion)",
        "ascore": "(self, messages, completion)",
        "tokenize": "(self, text, *, context=None)",
        "atokenize": "(self, text, *, context=None)",
    }
    for name, signature in promised.items():
        actual = inspect.signature(getattr(SGLangBackend, name))
        plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in actual.parameters.values()]
        assert str(actual.replace(parameters=plain, return_annotation=inspect.Signature.empty)) == signature, name
    assert inspect.iscoroutinefunction(SGLangBackend.achat)
    assert issubclass(SGLangBackend, LLMBackend)
    assert SGLangBackend.supports_bare_label_constraint is True


def test_both_faces_take_the_same_parameters() -> None:
    for name in ("chat", "score", "tokenize", "generate", "score_ids", "server_info"):
        one, other = (inspect.signature(getattr(SGLangBackend, form)) for form in (name, f"a{name}"))
        assert one == other, name


# Answers


def test_a_chat_gives_the_bare_label(talk: Any) -> None:
    with double() as server:
        said = talk(server).call("chat", ASK, constrain_labels=["yes", "no"])
        assert (said.label, said.text, said.finish) == ("yes", "yes", "stop")
        assert server.requests("/generate")[0].body["sampling_params"]["regex"] == "(yes|no)"


def test_chat_and_score_send_the_same_prompt_with_one_begin_token(talk: Any) -> None:
    """BC-24: the template's ids, the begin token once and first, on both paths."""

    def generate(body: dict[str, Any]) -> Response:
        rows = [[None, 5, None], [-0.5, 7, None]]
        return answer("yes", [7, 2], body["input_ids"], input_token_logprobs=rows)

    with double(generate, bos=(0,)) as server:
        client = talk(server)
        chatted, scored = client.call("chat", ASK), client.call("score", ASK, "yes")
        sent = [seen.body["input_ids"] for seen in server.requests("/generate")]
        assert chatted.prompt_ids == scored.prompt_ids == (0, 4, 5)
        assert sent == [[0, 4, 5], [0, 4, 5, 7]]


def test_a_server_that_adds_a_second_begin_token_is_found_out(talk: Any) -> None:
    """BC-24."""
    adds = double(lambda body: answer("yes", [7], [0, *body["input_ids"]]))
    with adds as server, pytest.raises(UnsoundAnswerError, match="2 prompt tokens were sent, the model saw 3"):
        talk(server).call("chat", ASK)


@pytest.mark.parametrize(
    ("before", "completion", "ids"),
    [("Gre", "en", [2]), ("Label: ", "yes", [7]), ("Label:", " yes", [6])],
)
def test_no_token_spans_the_join_of_prompt_and_completion(
    talk: Any, before: str, completion: str, ids: list[int]
) -> None:
    """BC-27: ids(prompt) + ids(completion), a value for exactly each of the latter."""

    def generate(body: dict[str, Any]) -> Response:
        start = body["logprob_start_len"]
        rows = [[None if at == 0 else -0.5, token, None] for at, token in enumerate(body["input_ids"][start:])]
        return answer("", [], body["input_ids"], input_token_logprobs=rows)

    with double(generate) as server:
        scored = talk(server).call("score", [ChatMessage("user", before)], completion)
        assert [token.id for token in scored.tokens] == ids
        assert scored.total == -0.5 * len(ids)
        assert server.requests("/generate")[0].body["input_ids"] == [*TOKENS.encode(before), *ids]


def test_an_empty_completion_is_an_error(talk: Any) -> None:
    """BC-27."""
    with double() as server, pytest.raises(ValueError, match="empty"):
        talk(server).call("score", ASK, "")


@pytest.mark.parametrize("rows", [[], [[None, 7, "yes"]], None])
def test_a_completion_without_a_value_for_each_token_is_unscored(talk: Any, rows: Any) -> None:
    """BC-28."""
    generate = lambda body: answer("", [], body["input_ids"], input_token_logprobs=rows)  # noqa: E731
    with double(generate) as server, pytest.raises(UnsoundAnswerError, match="unscored"):
        talk(server).call("score", ASK, "yes")


def test_with_a_context_only_the_tokens_after_it_come_back(talk: Any) -> None:
    with double() as server:
        client = talk(server)
        assert [(t.id, t.text) for t in client.call("tokenize", "Green yes")] == [(3, "Green"), (6, " yes")]
        assert [(t.id, t.text) for t in client.call("tokenize", "en yes", context="Gre")] == [(2, "en"), (6, " yes")]


def test_a_tokenizer_that_marks_word_starts_continues_without_a_space(talk: Any) -> None:
    """BC-05, BC-27: `yes` alone is `▁yes`, which would read as ` yes` behind a prompt."""

    class Marking:
        """Metaspace, as SentencePiece models have it: lone text gets a space in front, decoding drops it."""

        def __init__(self) -> None:
            from tokenizers import Tokenizer, decoders, models, pre_tokenizers

            words = ["<unk>", "▁", "▁yes", "yes", "▁Label:", "\n"]
            scores = [(word, -float(at)) for at, word in enumerate(words)]
            self._tokenizer = Tokenizer(models.Unigram(scores, 0))
            self._tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
            self._tokenizer.decoder = decoders.Metaspace(prepend_scheme="always", split=False)

        def encode(self, text: str) -> list[int]:
            ids: list[int] = self._tokenizer.encode(text).ids
            return ids

        def decode(self, ids: Any) -> str:
            text: str = self._tokenizer.decode(list(ids))
            return text

    with double(tokenizer=Marking()) as server:
        client = talk(server)
        assert [token.id for token in client.call("tokenize", "yes")] == [2]
        assert [token.id for token in client.call("tokenize", "yes", context="Label:")] == [3]
        assert [token.id for token in client.call("tokenize", " yes", context="Label:")] == [2]


def test_a_generation_carries_its_arrival_times_and_what_a_processor_reported(talk: Any) -> None:
    def generate(body: dict[str, Any]) -> Response:
        prompt = body["input_ids"]
        last = json.loads(event("yes", [7, 2], prompt, STOP)[6:])
        last["meta_info"]["mask_s"] = [0.1, 0.2]
        return Response([event("yes", [7], prompt), 0.1, b"data: " + json.dumps(last).encode() + b"\n\n", DONE])

    with double(generate) as server:
        made: Generated = talk(server).call("generate", (4, 5), sampling=Sampling(max_tokens=4))
        assert (made.token_ids, made.text, made.finish) == ((7, 2), "yes", "stop")
        assert made.meta["mask_s"] == [0.1, 0.2]
        first, second = made.timing.token_s
        assert made.timing.first_token_s == first
        assert first <= second <= made.timing.done_s


@pytest.mark.parametrize("ids", [[], [-1]])
def test_prompt_ids_that_no_server_can_take_are_refused_before_they_are_sent(talk: Any, ids: list[int]) -> None:
    with double() as server, pytest.raises(ValueError):
        talk(server).call("generate", ids, sampling=Sampling(max_tokens=4))


# Failures


def test_an_overloaded_server_is_asked_again_and_partial_text_is_dropped(talk: Any) -> None:
    """BC-21: an abort with HTTP 200, a 503, a stream that is aborted, then the answer."""
    full = {"finish_reason": {"type": "abort", "status_code": 429, "message": "queue is full"}}
    aborted = {"type": "abort", "message": "Aborted", "status_code": None}
    generate = script(
        Response([b"data: " + json.dumps({"text": "", "meta_info": full}).encode() + b"\n\n", DONE]),
        Response([b'{"error":"queue timeout"}'], 503, {"Retry-After": "0"}),
        lambda body: Response([event("no", [10], body["input_ids"]), event("no", [10], [], aborted), DONE]),
        lambda body: Response([event("yes", [7, 2], body["input_ids"], STOP), DONE]),
    )
    with double(generate) as server:
        made = talk(server).call("generate", (4, 5), sampling=Sampling(max_tokens=4))
        assert (made.text, made.attempts, made.completion_tokens) == ("yes", 4, 2)


def test_a_late_answer_is_never_taken_and_the_server_is_let_off(talk: Any) -> None:
    """BC-22, s1: the first attempt would say `no`, too late; its connection is closed."""
    generate = script(lambda body: Response([5.0, b"no"]), say("yes"))
    with double(generate) as server:
        said = talk(server, timeout=1.0).call("chat", ASK)
        assert (said.text, said.attempts) == ("yes", 2)
        late, right = server.requests("/generate")
        assert late.hung_up.wait(2.0)
        assert not right.hung_up.is_set()


def test_a_request_that_never_returns_ends_as_timed_out(talk: Any) -> None:
    """BC-22, s2."""
    never = double(lambda body: Response([30.0]))
    with never as server, pytest.raises(TimedOutError, match=r"no complete answer within 0.2 s after 2 attempts"):
        talk(server, timeout=0.2, retries=Retries(2, 0.001)).call("chat", ASK)


def test_a_stream_that_trickles_past_the_time_limit_is_cut(talk: Any) -> None:
    """Each piece comes in time, the whole does not."""

    def generate(body: dict[str, Any]) -> Response:
        pieces = [[event("no", [10] * n, body["input_ids"]), 0.15] for n in range(1, 40)]
        return Response([part for piece in pieces for part in piece])

    with double(generate) as server:
        with pytest.raises(TimedOutError):
            talk(server, timeout=0.4, retries=Retries(1)).call("generate", (4,), sampling=Sampling(max_tokens=99))
        (seen,) = server.requests("/generate")
        assert seen.hung_up.wait(2.0)


def test_a_stream_that_stalls_is_cut_at_the_time_limit(talk: Any) -> None:
    stalls = double(lambda body: Response([event("no", [10], body["input_ids"]), 30.0]))
    with stalls as server, pytest.raises(TimedOutError):
        talk(server, timeout=0.3, retries=Retries(1)).call("generate", (4,), sampling=Sampling(max_tokens=99))


def test_a_stream_that_breaks_off_is_no_answer(talk: Any) -> None:
    generate = script(
        lambda body: Response([event("no", [10], body["input_ids"])]),
        lambda body: Response([event("yes", [7, 2], body["input_ids"], STOP), DONE]),
    )
    with double(generate) as server:
        made = talk(server).call("generate", (4, 5), sampling=Sampling(max_tokens=4))
        assert (made.text, made.attempts) == ("yes", 2)


def test_a_connection_that_drops_is_tried_again_a_bounded_number_of_times(talk: Any) -> None:
    with double(lambda body: Response([])) as server:
        with pytest.raises(UnavailableError, match="after 3 attempts"):
            talk(server, retries=Retries(3, 0.001)).call("chat", ASK)
        assert len(server.requests("/generate")) == 3


def test_a_server_that_is_not_there_is_unavailable(talk: Any) -> None:
    with double() as server:
        pass
    with pytest.raises(UnavailableError, match="Connect"):
        talk(server, retries=Retries(2, 0.001)).call("chat", ASK)


def test_a_refusal_is_raised_at_once_with_the_servers_reason(talk: Any) -> None:
    """BC-21: 4xx other than 408, 409, 425 and 429 is not sent again."""
    refusal = Response([b'{"error":{"message":"Failed to compile regex grammar: no"}}'], 400)
    with double(lambda body: refusal) as server:
        with pytest.raises(RejectedError, match="Failed to compile regex grammar") as caught:
            talk(server).call("chat", ASK)
        assert (caught.value.status, caught.value.attempts) == (400, 1)


def test_a_page_that_is_no_json_is_an_error_that_shows_it(talk: Any) -> None:
    page = double(lambda body: Response([b"<html>hello</html>"]))
    with page as server, pytest.raises(BackendError, match="<html>"):
        talk(server).call("chat", ASK)


def test_cancelling_a_call_closes_its_connection() -> None:
    async def give_up(backend: SGLangBackend) -> None:
        async with backend:
            task = asyncio.create_task(backend.achat(ASK))
            while not server.requests("/generate"):
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with double(lambda body: Response([30.0])) as server:
        asyncio.run(give_up(SGLangBackend("double", server.url)))
        assert server.requests("/generate")[0].hung_up.wait(2.0)


# Connections


def test_connections_are_kept_and_used_again(talk: Any) -> None:
    with double() as server:
        client = talk(server)
        client.call("chat", ASK)
        client.call("chat", ASK)
        assert len(server.seen) == 5
        assert len({seen.connection for seen in server.seen}) == 1


def test_calls_at_once_have_connections_and_ids_of_their_own() -> None:
    async def many(backend: SGLangBackend) -> list[Any]:
        async with backend:
            return await asyncio.gather(*(backend.achat(ASK) for _ in range(20)))

    with double(lambda body: Response([0.05, *answer("yes", [7, 2], body["input_ids"]).pieces])) as server:
        answers = asyncio.run(many(SGLangBackend("double", server.url)))
        sent = [seen.body["rid"] for seen in server.requests("/generate")]
        assert [said.text for said in answers] == ["yes"] * 20
        assert len(set(sent)) == 20
        assert {len(rid) for rid in sent} == {32}
        assert sorted(sent) == sorted(said.request_id for said in answers)


def test_a_client_can_be_used_in_one_event_loop_after_another() -> None:
    with double() as server:
        backend = SGLangBackend("double", server.url)
        assert [asyncio.run(backend.achat(ASK)).text for _ in range(2)] == ["yes", "yes"]
        asyncio.run(backend.aclose())


def test_the_key_goes_with_every_request(talk: Any) -> None:
    with double() as server:
        talk(server, api_key="s3cret").call("chat", ASK)
        assert {seen.headers["authorization"] for seen in server.seen} == {"Bearer s3cret"}


# The server


def test_a_server_of_another_model_is_refused(talk: Any) -> None:
    with double() as server, pytest.raises(DeploymentError, match="serves double"):
        talk(server, model="another").call("chat", ASK)


def test_an_unknown_version_is_warned_about_once(talk: Any) -> None:
    with double(info={"version": "0.9.9", "served_model_name": "double"}) as server:
        client = talk(server)
        with pytest.warns(UserWarning, match=r"SGLang 0\.9\.9"):
            client.call("chat", ASK)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            client.call("chat", ASK)


def test_a_known_version_is_not_warned_about(talk: Any) -> None:
    with double() as server, warnings.catch_warnings():
        warnings.simplefilter("error")
        talk(server).call("chat", ASK)


def test_what_a_server_says_of_itself_comes_without_its_key(talk: Any) -> None:
    with double(info={"version": "0.5.23", "served_model_name": "double", "api_key": "s3cret"}) as server:
        assert talk(server).call("server_info")["api_key"] == "<redacted>"


@pytest.mark.parametrize(
    "options",
    [
        {"base_url": "localhost:30000"},
        {"timeout": 0.0},
        {"extra_body": {"temperature": 1.0}},
        {"extra_body": {"sampling_params": {"max_new_tokens": 9}}},
    ],
)
def test_a_client_that_cannot_work_is_refused_when_it_is_made(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        SGLangBackend("double", **options)
