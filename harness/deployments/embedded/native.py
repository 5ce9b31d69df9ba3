"""`native`: the mask engine runs inside the deployment's loop, as a server's grammar does.

Constraints are compiled in threads while their requests wait for a seat. Masks are filled in the loop, once the forward
pass is handed over: on CUDA that is while it still runs, on the CPU after it.
"""

import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from harness.constraint import Constraint
from harness.errors import Unsupported
from harness.mask import Automaton, Compiler, Mask, MaskEngine, Matcher, words
from harness.processors.masker import Masked, Steering
from harness.request import Failure, Request
from harness.vocabulary import Vocabulary

if TYPE_CHECKING:
    import torch

_COMPILERS = 2
_REMEMBERED = 64
"""Compiled constraints kept for later requests, those used last, as many as a worker keeps of its own."""


@dataclass(frozen=True)
class _Compiled:
    automaton: Automaton
    seconds: float


@dataclass
class _Sequence:
    """One request: its constraint being compiled, and its matcher once it runs."""

    compiled: "Future[_Compiled]"
    first_use: bool
    matcher: Matcher | None = None
    advance_s: float = 0.0
    refused: Failure | None = None


class NativeMasker:
    """A masker with its engine in the loop's own thread. Making one takes as long as the engine takes to read the
    vocabulary."""

    def __init__(self, engine: MaskEngine, vocabulary: Vocabulary) -> None:
        self._name = engine.name
        self._width = vocabulary.width
        self._compiler: Compiler = engine.compiler(vocabulary)
        self._pool = ThreadPoolExecutor(_COMPILERS, thread_name_prefix=f"compile-{engine.name}")
        self._known: OrderedDict[Constraint, Future[_Compiled]] = OrderedDict()
        self._sequences: dict[str, _Sequence] = {}

    def __len__(self) -> int:
        """How many requests it holds."""
        return len(self._sequences)

    def open(self, request: Request) -> None:
        assert request.constraint is not None, "a free request needs no masker"
        first_use = request.constraint not in self._known
        if first_use:
            self._known[request.constraint] = self._pool.submit(self._compile, request.constraint)
        self._known.move_to_end(request.constraint)
        self._sequences[request.id] = _Sequence(self._known[request.constraint], first_use)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    def ready(self, request_id: str) -> bool | Failure:
        sequence = self._sequences[request_id]
        if not sequence.compiled.done():
            return False
        match sequence.compiled.exception():
            case None:
                return self._begun(request_id, sequence)
            case Unsupported() as error:
                return self._limit(request_id, error)
            case error:  # a fault of the engine's library is this request's alone
                return self._fault(request_id, f"could not compile the constraint: {error!r}")

    def compile_s(self, request_id: str) -> float:
        sequence = self._sequences[request_id]
        return sequence.compiled.result().seconds if sequence.first_use else 0.0

    def start(self, request_ids: Sequence[str]) -> None:
        """Nothing is made ahead."""

    def collect(self, request_ids: Sequence[str], logits: "torch.Tensor") -> Mapping[str, Steering]:
        before = time.perf_counter()
        masks = np.zeros((len(request_ids), words(self._width)), dtype=np.int32)
        answers: dict[str, Steering] = {}
        for name, mask in zip(request_ids, masks, strict=True):
            answers[name] = self._fill(name, mask, before)
            before = time.perf_counter()
        return answers

    def token(self, request_id: str, token: int) -> None:
        sequence = self._sequences[request_id]
        begin = time.perf_counter()
        try:
            _matcher(sequence).advance(token)
        except ValueError as error:  # the mask allowed it: the engine contradicts itself
            sequence.refused = self._fault(request_id, f"allowed a token and then refused it: {error}")
        except Unsupported as error:  # the text has led the library to one of its limits
            sequence.refused = self._limit(request_id, error)
        except BaseException as error:  # a panic in Rust is no Exception, and must not end the loop
            sequence.refused = self._fault(request_id, f"could not take a token: {error!r}")
        sequence.advance_s = time.perf_counter() - begin

    def close(self, request_id: str) -> None:
        self._sequences.pop(request_id, None)

    def stop(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _compile(self, constraint: Constraint) -> _Compiled:
        begin = time.perf_counter()
        automaton = self._compiler.compile(constraint)
        return _Compiled(automaton, time.perf_counter() - begin)

    def _begun(self, request_id: str, sequence: _Sequence) -> Literal[True] | Failure:
        try:
            sequence.matcher = sequence.matcher or sequence.compiled.result().automaton.matcher()
        except Unsupported as error:
            return self._limit(request_id, error)
        except BaseException as error:  # as in `token`
            return self._fault(request_id, f"could not begin a text: {error!r}")
        return True

    def _fill(self, request_id: str, mask: Mask, before: float) -> Steering:
        """`before` is when the loop turned to this row; what it did for it since then is mask time."""
        sequence = self._sequences[request_id]
        if sequence.refused is not None:
            return sequence.refused
        try:
            _matcher(sequence).fill(mask)
        except Unsupported as error:
            return self._limit(request_id, error)
        except BaseException as error:  # as in `token`
            return self._fault(request_id, f"could not make a mask: {error!r}")
        return Masked(mask, time.perf_counter() - before + sequence.advance_s)

    def _limit(self, request_id: str, error: Unsupported) -> Failure:
        return Failure(request_id, "unsupported", f"{self._name}: {error.reason}")

    def _fault(self, request_id: str, what: str) -> Failure:
        """The same kind as in a worker, where libraries do what they like too: one request's failure."""
        return Failure(request_id, "processor", f"{self._name} {what}")


def _matcher(sequence: _Sequence) -> Matcher:
    assert sequence.matcher is not None, "a request joins the batch only once its constraint is compiled"
    return sequence.matcher
