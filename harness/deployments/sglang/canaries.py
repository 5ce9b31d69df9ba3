"""Canaries of SGLang servers: settings under which a comparison would be wrong, found before it starts."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from harness.constraint import Labels
from harness.deployments.inside.faulty import FAULTY
from harness.deployments.sglang.faults import BackendError
from harness.deployments.sglang.values import ServerGrammar
from harness.errors import HarnessError
from harness.method import AsyncProcessor, Method, Native, Processor, Unconstrained
from harness.preflight import QUESTIONS, Question, Verdict
from harness.request import Completion, Failure, Request, Sampling

if TYPE_CHECKING:
    from harness.deployments.sglang.deployment import SGLangDeployment

FORCED = Labels(("no yes yes no no yes yes no",))
"""One label, so that a right history gives it exactly, and one that lacks a token repeats or skips a word."""
MIXED = 3

DELAYED = "start it with SGLANG_ENABLE_DELAY_SAMPLE=1 or --disable-overlap-schedule (deployment.overlap=delayed or off)"
TEXTS = ("Hello, world!", "naïve 🙂 déjà", "  two  spaces\n", '{"a": [1, 2.5, null]}', "x == y && z")


async def settings(deployment: "SGLangDeployment", question: Question) -> AsyncIterator[Verdict]:
    """What the server says of itself, whether it reads text alike, and which engines it has."""
    said = _settings(deployment.parts.server, question)
    for verdict in said:
        yield verdict
    yield await _tokenizer(deployment)
    if _runs_code(question.methods) and all(verdict.verdict != "refused" for verdict in said):
        async for verdict in _engines(deployment, question):
            yield verdict


async def behaviour(deployment: "SGLangDeployment", question: Question) -> AsyncIterator[Verdict]:
    """What the server does: log-probabilities, histories, faults."""
    yield await _temperature(deployment, question)
    if (method := _first_processor(question.methods)) is not None:
        for verdict in await _processors(deployment, question, method):
            yield verdict


def _settings(server: Mapping[str, Any], question: Question) -> list[Verdict]:
    checks = [
        _version(server),
        _streaming(server),
        _grammar_backend(server, question.methods),
        _seeds(server, question),
    ]
    if _runs_code(question.methods):
        checks += [_flag(server), _speculation(server)]
    return [verdict for verdict in checks if verdict is not None]


def _version(server: Mapping[str, Any]) -> Verdict:
    return Verdict("server", "ok", f"SGLang {server.get('version')}, {server.get('dtype')} on {server.get('device')}")


def _streaming(server: Mapping[str, Any]) -> Verdict | None:
    if not server.get("incremental_streaming_output"):
        return None
    fix = "start the server without --incremental-streaming-output"
    return Verdict("streaming", "refused", "the server streams pieces", "answers that are whole in each event", fix)


def _grammar_backend(server: Mapping[str, Any], methods: tuple[Method, ...]) -> Verdict | None:
    backend = str(server.get("grammar_backend"))
    wrong = [method.engine for method in methods if isinstance(method, Native) and method.engine != backend]
    if wrong:
        fix = f"set method.native.engine={backend}, or start the server with --grammar-backend {wrong[0]}"
        return Verdict("grammar backend", "refused", f"the server's is {backend}", f"{wrong[0]}, the arm's", fix)
    return Verdict("grammar backend", "ok", backend)


def _seeds(server: Mapping[str, Any], question: Question) -> Verdict | None:
    if question.temperature == 0.0 or server.get("enable_deterministic_inference"):
        return None
    return Verdict("seeds", "measured", "the server ignores seeds: sampled answers differ from run to run")


def _flag(server: Mapping[str, Any]) -> Verdict:
    if server.get("enable_custom_logit_processor"):
        return Verdict("processors allowed", "ok", "--enable-custom-logit-processor is set")
    fix = "start it with --enable-custom-logit-processor, or drop the arms that use processors"
    return Verdict("processors allowed", "refused", "the server takes no processors", "a server that does", fix)


def _speculation(server: Mapping[str, Any]) -> Verdict | None:
    if not (algorithm := server.get("speculative_algorithm")):
        return None
    fix = "start it without speculative decoding, or drop the arms that use processors"
    return Verdict("speculation", "refused", f"{algorithm} passes processors over", "no speculative decoding", fix)


async def _tokenizer(deployment: "SGLangDeployment") -> Verdict:
    """The server must read text as the harness does, or every prompt is another one."""
    name, fix = "tokenizer", "set deployment.tokenizer to that of the model that is served"
    for text in TEXTS:
        ours = deployment.parts.prompter.encode(text)
        try:
            theirs = tuple(token.id for token in await deployment.parts.backend.atokenize(text))
        except BackendError as error:
            return Verdict(name, "refused", f"the server does not tokenize: {error}", "its /tokenize answers", fix)
        if ours != theirs:
            found = f"{text!r} is {list(theirs)} to the server and {list(ours)} here"
            return Verdict(name, "refused", found, "the same ids", fix)
    return Verdict(name, "ok", f"{len(TEXTS)} texts have the same ids on both sides")


async def _temperature(deployment: "SGLangDeployment", question: Question) -> Verdict:
    """Whether what a generation reports at another temperature than 1 is that of temperature 1."""
    prompt = question.prompter.prompt(QUESTIONS[1]).ids
    backend = deployment.parts.backend
    said = await backend.agenerate(prompt, sampling=Sampling(1, temperature=3.0), logprobs=True, cache="preflight")
    (raw,) = await backend.ascore_ids(prompt, said.token_ids, cache="preflight")
    reported = (said.tokens or ())[0].logprob
    after = abs(reported - raw.logprob) > 0.3
    grammar = ServerGrammar("regex", "(yes|no)") if deployment.parts.server.get("grammar_backend") != "none" else None
    masked = "no grammar backend"
    if grammar is not None:
        held = await backend.agenerate(prompt, sampling=Sampling(4), grammar=grammar, logprobs=True, cache="preflight")
        (first, *_) = await backend.ascore_ids(prompt, held.token_ids, cache="preflight")
        masked = "after the mask" if (held.tokens or ())[0].logprob - first.logprob > 0.3 else "before the mask"
    if masked == "before the mask":
        wanted = "values after the mask, as every SGLang version since 0.4.1 gives them"
        return Verdict("returned log-probabilities", "refused", masked, wanted, "use a version that does")
    return Verdict("returned log-probabilities", "measured", f"{masked}, {'after' if after else 'before'} temperature")


async def _engines(deployment: "SGLangDeployment", question: Question) -> AsyncIterator[Verdict]:
    """Whether the code of processors can be brought into the server, and the engines are there."""
    courier, backend = deployment.parts.courier, deployment.parts.backend
    try:
        courier.prepare(question.methods)
        await courier.deliver(backend)
    except HarnessError as error:
        yield Verdict("processors in the server", "refused", error.found, error.wanted, error.fix)
        return
    running = [method for method in question.methods if isinstance(method, Processor | AsyncProcessor)]
    for name in dict.fromkeys(method.engine for method in running if not method.call):
        said = await courier.engine(backend, name)
        found = said.get("version") or said["missing"]
        if "missing" in said:
            fix = "install the engine's library, in the version that the harness has, in the server's environment"
            yield Verdict(f"{name} in the server", "refused", found, "an engine that can be imported there", fix)
        else:
            yield Verdict(f"{name} in the server", "ok", f"version {found}, Python {said['python']}")


async def _processors(deployment: "SGLangDeployment", question: Question, method: Method) -> list[Verdict]:
    """A forced text comes out exactly, alone and beside a grammar's traffic; a fault ends one request."""
    try:
        alone = await _forced(deployment, question, method, mixed=False)
        mixed = await _forced(deployment, question, method, mixed=True)
    except HarnessError as error:
        return [Verdict("processors", "refused", error.found, error.wanted, error.fix)]
    return [alone, mixed, await _contained(deployment, question)]


async def _forced(deployment: "SGLangDeployment", question: Question, method: Method, mixed: bool) -> Verdict:
    name = "history, mixed with a grammar" if mixed else "history"
    asked = [
        question.request(f"{name} {n}", QUESTIONS[n], Sampling(64), constraint=FORCED, method=method)
        for n in range(MIXED)
    ]
    backend = str(deployment.parts.server.get("grammar_backend"))
    beside: list[Request] = []
    if mixed and backend != "none":
        native, label = (
            Native(backend),
            Labels(("so",)),
        )  # short: a grammar in the batch makes histories fresh for as long as it runs
        beside = [
            question.request(f"beside {n}", QUESTIONS[n], Sampling(64), constraint=label, method=native)
            for n in range(MIXED)
        ]
    answers = (await asyncio.gather(*(deployment.generate(request) for request in [*beside, *asked])))[len(beside) :]
    wanted = f"{FORCED.labels[0]!r}, exactly"
    for answer in answers:
        if isinstance(answer, Failure):
            fix = DELAYED if "history" in answer.message else "see the message"
            return Verdict(name, "refused", answer.message, wanted, fix)
        if answer.text != FORCED.labels[0]:
            return Verdict(name, "refused", f"a forced text came out as {answer.text!r}", wanted, DELAYED)
    return Verdict(name, "ok", f"a forced text came out exactly, {len(answers)} times at once")


async def _contained(deployment: "SGLangDeployment", question: Question) -> Verdict:
    name = "faults contained"
    bad = question.request(
        "fault", QUESTIONS[0], Sampling(4), constraint=Labels(("yes",)), method=Processor(call=f"{FAULTY}:raises")
    )
    failed = await deployment.generate(bad)
    after = await deployment.generate(question.request("after the fault", QUESTIONS[0], Sampling(2)))
    if isinstance(failed, Failure) and isinstance(after, Completion):
        return Verdict(name, "ok", "a processor that raises ended its request, and the server answered the next")
    found = f"a processor that raises gave {failed}, the request after it {after}"
    return Verdict(name, "refused", found, "one failed request", "use SGLang 0.5.23, with which this was tested")


def _first_processor(methods: tuple[Method, ...]) -> Method | None:
    """The engine whose history is checked: the first of the arms that run in the server. Where only code of the user's
    own does, the engine that ships is taken: history is the server's matter."""
    running = [method for method in methods if isinstance(method, Processor | AsyncProcessor)]
    engines = [method for method in running if not method.call]
    return (engines or [Processor()] if running else [None])[0]


def _runs_code(methods: tuple[Method, ...]) -> bool:
    return any(not isinstance(method, Native | Unconstrained) for method in methods)
