"""What is checked before a run: canaries with a known right answer, each with its verdict, its finding and what to do.

Here is what every deployment is asked; one that knows more about itself brings canaries of its own. Whatever is refused
stops the run before its first request.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Literal, Protocol, runtime_checkable

import msgspec

from harness.constraint import Labels
from harness.deployment import Deployment
from harness.errors import HarnessError, PreflightError
from harness.method import AsyncProcessor, Method, Processor, Unconstrained, arm_name
from harness.prompt import Prompter
from harness.request import Completion, Failure, Request, Sampling
from harness.vocabulary import Vocabulary

NOISE_LIMIT = 1.0
"""Nats by which scores may differ from what generation reports: more is no noise but another quantity."""

YES_NO = Labels(("yes", "no"))
QUESTIONS = ("Is the sky blue?", "Name a colour.", "What is two plus two?", "Say hello to Ann.")


class Verdict(msgspec.Struct, frozen=True):
    """`ok`, `refused`, or `measured`: a number that a reader of the results should know."""

    name: str
    verdict: Literal["ok", "refused", "measured"]
    found: str
    wanted: str = ""
    fix: str = ""


class Question(msgspec.Struct, frozen=True):
    """What canaries are about: the arms of a run, and how its prompts are made."""

    methods: tuple[Method, ...]
    prompter: Prompter
    vocabulary: Vocabulary
    temperature: float

    def request(self, name: str, text: str, sampling: Sampling, **how: object) -> Request:
        """A request of this preflight."""
        prompt = self.prompter.prompt(text).ids
        return msgspec.structs.replace(
            Request(f"preflight|{name}", name, prompt, None, Unconstrained(), sampling, "preflight"), **how
        )


@runtime_checkable
class Canaries(Protocol):
    """A deployment with canaries of its own."""

    def settings(self, question: Question) -> AsyncIterator[Verdict]:
        """Those that come first: where one refuses, nothing else is asked."""

    def behaviour(self, question: Question) -> AsyncIterator[Verdict]:
        """Those that come after each arm has answered, so that they pay for none of its start-up."""


class Outcome(msgspec.Struct, frozen=True):
    """All verdicts, and the seconds that the first answer of each arm took, start-up included."""

    verdicts: tuple[Verdict, ...]
    startup_s: dict[str, float]

    @property
    def refused(self) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.verdicts if verdict.verdict == "refused")

    def check(self) -> None:
        """Raise `PreflightError` with all that is refused."""
        if refused := self.refused:
            raise PreflightError(
                "preflight: " + "; ".join(f"{verdict.name}: {verdict.found}" for verdict in refused),
                "; ".join(dict.fromkeys(verdict.wanted for verdict in refused if verdict.wanted)),
                "; ".join(dict.fromkeys(verdict.fix for verdict in refused if verdict.fix)),
            )


async def preflight(deployment: Deployment, question: Question) -> Outcome:
    """Ask every canary, the deployment's settings first; none of the others where one of those refuses."""
    own = deployment if isinstance(deployment, Canaries) else None
    verdicts = [verdict async for verdict in own.settings(question)] if own else []
    startup_s: dict[str, float] = {}
    if any(verdict.verdict == "refused" for verdict in verdicts):
        return Outcome(tuple(verdicts), startup_s)
    verdicts += [_begin_token(question), _widths(deployment, question)]
    for method in question.methods:
        began = time.perf_counter()
        if (verdict := await _arm(deployment, question, method)) is not None:
            verdicts.append(verdict)
            startup_s[arm_name(method)] = time.perf_counter() - began
    if own:
        verdicts += [verdict async for verdict in own.behaviour(question)]
    verdicts += [await _noise(deployment, question), await _batching(deployment, question)]
    return Outcome(tuple(verdicts), startup_s)


def table(verdicts: Sequence[Verdict]) -> str:
    """The verdicts as lines of text."""
    width = max((len(verdict.name) for verdict in verdicts), default=0)
    lines = []
    for verdict in verdicts:
        lines.append(f"{verdict.verdict:<8}  {verdict.name:<{width}}  {verdict.found}")
        if verdict.verdict == "refused":
            indent = " " * (width + 12)
            lines += [f"{indent}wanted: {verdict.wanted}"] if verdict.wanted else []
            lines += [f"{indent}to mend: {verdict.fix}"] if verdict.fix else []
    return "\n".join(lines)


def _begin_token(question: Question) -> Verdict:
    begin, ids = question.prompter.tokenizer.bos_token_id, question.prompter.prompt(QUESTIONS[0]).ids
    if begin is None:
        return Verdict("begin token", "ok", "the model has none")
    count = next((place for place, token in enumerate(ids) if token != begin), len(ids))
    found = f"{count} at the front of a prompt"
    if count > 1:
        return Verdict("begin token", "refused", found, "at most one", "mend the tokenizer's chat template")
    return Verdict("begin token", "ok", found)


def _widths(deployment: Deployment, question: Question) -> Verdict:
    tokens, width = len(question.vocabulary.tokens), deployment.info.width
    return Verdict("widths", "ok", f"{tokens:,} tokens, {width:,} logits")


async def _arm(deployment: Deployment, question: Question, method: Method) -> Verdict | None:
    """Whether an arm holds an answer to one of two labels and ends it by a stop token. What a user's own code gives is
    not known beforehand, so it is only loaded by the run."""
    if isinstance(method, Unconstrained) or (isinstance(method, Processor | AsyncProcessor) and method.call):
        return None
    name = f"arm {arm_name(method)}"
    request = question.request(name, QUESTIONS[0], Sampling(16), constraint=YES_NO, method=method)
    wanted, fix = "'yes' or 'no', ended by a stop token", "mend the set-up of this arm, or drop it"
    try:
        answer = await deployment.generate(request)
    except HarnessError as error:
        return Verdict(name, "refused", error.found, error.wanted or wanted, error.fix or fix)
    if isinstance(answer, Failure):
        return Verdict(name, "refused", f"{answer.failure}: {answer.message}", wanted, fix)
    ends = answer.finish == "stop" and answer.token_ids[-1] in deployment.info.stop_ids
    if answer.text not in YES_NO.labels or not ends:
        found = f"{answer.text!r}, finish {answer.finish}, last token {answer.token_ids[-1]}"
        return Verdict(name, "refused", found, wanted, fix)
    return Verdict(name, "ok", f"answers {answer.text!r} and ends with stop token {answer.token_ids[-1]}")


async def _noise(deployment: Deployment, question: Question) -> Verdict:
    """How far scores and what generation reports lie apart for the same tokens."""
    name, wanted = "prefill and decode", f"less than {NOISE_LIMIT:g} nats apart"
    request = question.request("noise", QUESTIONS[1], Sampling(16))
    answer = await deployment.generate(request)
    if not isinstance(answer, Completion) or answer.trace is None:
        return Verdict(name, "refused", f"no answer to a free question: {answer}", "an answer", "see the message")
    (scored,) = await deployment.score(request.prompt_ids, [answer.token_ids])
    said = answer.trace.raw_logprob
    apart = [abs(a - b) for a, b in zip(said, scored.logprobs, strict=True) if a is not None]
    found = f"log-probabilities at most {max(apart):.2g}, on average {sum(apart) / len(apart):.2g} nats apart"
    if max(apart) > NOISE_LIMIT:
        return Verdict(name, "refused", found, wanted, "use a wider dtype, or a server that scores unmasked")
    return Verdict(name, "measured", found)


async def _batching(deployment: Deployment, question: Question) -> Verdict:
    """Whether greedy answers are the same alone and beside others."""
    asked = [question.request(f"batch {n}", text, Sampling(12)) for n, text in enumerate(QUESTIONS)]
    alone = [await deployment.generate(request) for request in asked]
    beside = await asyncio.gather(*(deployment.generate(request) for request in asked))
    same = sum(_ids(one) == _ids(other) for one, other in zip(alone, beside, strict=True))
    found = f"{same} of {len(asked)} greedy answers are the same alone and together"
    return Verdict("batching", "ok" if same == len(asked) else "measured", found)


def _ids(answer: Completion | Failure) -> tuple[int, ...] | None:
    return answer.token_ids if isinstance(answer, Completion) else None
