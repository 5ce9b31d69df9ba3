"""The engine in the loop: constraints compile beside it, masks are the engine's, and its faults are one request's."""

import time

import pytest
import torch
from decoding_loop import VOCABULARY, WIDTH, Loop, labelled, request
from user_engines import FAULTY

from harness.constraint import Constraint, Labels, Regex
from harness.deployments.embedded.native import NativeMasker
from harness.deployments.embedded.steering import steer
from harness.errors import Unsupported
from harness.mask import Automaton, Compiler, Mask, Matcher
from harness.masks import engine
from harness.method import Native
from harness.processors.masker import Masked
from harness.request import Failure
from harness.vocabulary import Vocabulary

LLGUIDANCE = engine("llguidance")


class Broken:
    """An engine with a fault: it cannot compile regexes, and refuses the tokens that its masks allow."""

    name = "broken"
    no_matcher = False

    def version(self) -> str:
        return "0"

    def compiler(self, vocabulary: Vocabulary) -> Compiler:
        return self

    def compile(self, constraint: Constraint) -> Automaton:
        match constraint:
            case Labels():
                return self
            case Regex():
                raise Unsupported("no regexes here")
            case _:
                raise ZeroDivisionError("a fault of the library")

    def matcher(self) -> Matcher:
        if self.no_matcher:
            raise RuntimeError("no more states")
        return self

    def fill(self, mask: Mask) -> None:
        mask[:] = 1

    def advance(self, token: int) -> None:
        raise ValueError(f"{token} is not allowed")

    def finished(self) -> bool:
        return False


def test_answers_are_labels_whoever_comes_and_goes() -> None:
    loop = Loop(NativeMasker(LLGUIDANCE, VOCABULARY))
    pairs = {
        f"r{i}": pair for i, pair in enumerate([("no", "no evidence"), ("yes", "ab"), ("abc", "found"), ("a", "b")])
    }
    loop.open(*(labelled(name, *pair) for name, pair in list(pairs.items())[:2]))
    loop.step()
    loop.run(*(labelled(name, *pair) for name, pair in list(pairs.items())[2:]))
    assert all(VOCABULARY.text(loop.said[name]) in pair for name, pair in pairs.items())
    loop.masker.stop()


def test_a_constraint_is_compiled_once_and_its_first_user_pays() -> None:
    masker = NativeMasker(LLGUIDANCE, VOCABULARY)
    Loop(masker).open(labelled("first", "yes", "no"), labelled("second", "yes", "no"))
    assert masker.compile_s("first") > 0
    assert masker.compile_s("second") == 0
    masker.stop()


def test_masks_say_how_long_they_took_and_closing_twice_is_allowed() -> None:
    masker = NativeMasker(LLGUIDANCE, VOCABULARY)
    Loop(masker).open(labelled("one", "yes", "no"))
    answer = masker.collect(["one"], torch.zeros(1, WIDTH))["one"]
    assert isinstance(answer, Masked)
    assert answer.mask_s > 0
    masker.close("one")
    masker.close("one")
    masker.stop()


@pytest.mark.parametrize(
    ("constraint", "kind", "message"),
    [(Regex("a"), "unsupported", "no regexes here"), (Labels(("a",)), None, ""), (None, "processor", "ZeroDivision")],
)
def test_what_cannot_be_compiled_fails_its_request(
    constraint: Constraint | None, kind: str | None, message: str
) -> None:
    from harness.constraint import Grammar

    masker = NativeMasker(Broken(), VOCABULARY)
    masker.open(request("r", constraint or Grammar('root ::= "a"'), Native("broken")))
    while (ready := masker.ready("r")) is False:
        time.sleep(0.001)
    if kind is None:
        assert ready is True
    else:
        assert isinstance(ready, Failure)
        assert (ready.failure, message in ready.message) == (kind, True)
    masker.stop()


def test_an_engine_that_cannot_begin_a_text_fails_its_request() -> None:
    broken = Broken()
    broken.no_matcher = True
    masker = NativeMasker(broken, VOCABULARY)
    loop = Loop(masker)
    loop.open(labelled("r", "a"))
    assert (loop.failures["r"].failure, "no more states" in loop.failures["r"].message) == ("processor", True)
    masker.stop()


def test_an_engine_that_contradicts_its_own_mask_fails_its_request() -> None:
    masker = NativeMasker(Broken(), VOCABULARY)
    Loop(masker).open(labelled("r", "a"))
    masker.token("r", 0)
    answer = masker.collect(["r"], torch.zeros(1, WIDTH))["r"]
    assert isinstance(answer, Failure)
    assert (answer.failure, "allowed a token and then refused it" in answer.message) == ("processor", True)
    masker.stop()


@pytest.mark.parametrize(("deed", "words"), [("raises", "the table is torn"), ("exits", "SystemExit(3)")])
def test_a_library_that_raises_while_it_makes_a_mask_fails_its_request(deed: str, words: str) -> None:
    """Also what is no `Exception`, as a panic in Rust is not."""
    masker = NativeMasker(FAULTY, VOCABULARY)
    loop = Loop(masker)
    said = loop.run(labelled("before", "yes"), labelled("r", f"fill {deed}"), labelled("after", "no evidence"))
    assert (said["before"], said["after"]) == ("yes", "no evidence")
    assert (loop.failures["r"].failure, words in loop.failures["r"].message) == ("processor", True)
    masker.stop()


def test_a_mask_that_allows_nothing_fails_its_request_as_it_does_in_a_worker() -> None:
    masker = NativeMasker(FAULTY, VOCABULARY)
    Loop(masker).open(labelled("good", "yes"), labelled("r", "fill forbids all"))
    raw = torch.zeros(2, WIDTH)
    answers = masker.collect(["good", "r"], raw)
    wrong = steer(raw, {0: answers["good"], 1: answers["r"]}).wrong
    assert {place: kind for place, (kind, _) in wrong.items()} == {1: "processor"}
    masker.stop()
