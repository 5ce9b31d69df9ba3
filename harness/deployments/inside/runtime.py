"""The maskers of a run at work inside a server: one call a step, for all rows that are constrained by processors."""

import platform
import time
import weakref
import zipfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from harness.deployments.embedded.clock import clock
from harness.deployments.embedded.steering import steer
from harness.deployments.inside.bootstrap import FAILED
from harness.deployments.inside.numbers import rows_of
from harness.deployments.inside.order import Order
from harness.deployments.inside.runtime_names import VOCABULARY
from harness.deployments.inside.sequences import STALE, Sequence, in_prompt, over, report, tell
from harness.deployments.inside.telemetry import KEY
from harness.errors import HarnessError
from harness.masks import engine
from harness.method import AsyncProcessor, Processor
from harness.processors import masker_for
from harness.processors.masker import Masker, Steering
from harness.request import Failure, FailureKind, Request, Sampling
from harness.vocabulary import Vocabulary

if TYPE_CHECKING:
    import torch

POLL_S = 0.0005


class Runtime:
    """Puts masks on rows. It is called by the server's scheduler, one step at a time."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._maskers: dict[Processor | AsyncProcessor, Masker] = {}
        self._sequences: dict[str, Sequence] = {}
        self._gone: list[str] = []
        self._busy = False

    def process(self, logits: "torch.Tensor", params: list[dict[str, Any]]) -> "torch.Tensor":
        """New logits for the rows of one step, shape `(rows, width)`."""
        self._busy = True
        try:
            return self._process(logits, params)
        finally:
            self._busy = False
            self._let_go()

    def stop(self) -> None:
        """Free everything."""
        for masker in self._maskers.values():
            masker.stop()
        self._maskers.clear()
        self._sequences.clear()

    def _process(self, logits: "torch.Tensor", params: list[dict[str, Any]]) -> "torch.Tensor":
        self._let_go()
        running = self._running(logits, params)
        self._wait_until_compiled(running, params)
        fresh = {place: s for place, s in running.items() if self._tell(s, params[place]["__req__"])}
        if not fresh:
            return logits
        watch = clock(logits.device)
        begin = watch.mark()
        answers = self._collect(fresh, logits)
        ready = watch.mark()
        started = time.perf_counter()
        steered = steer(logits, answers)
        apply_s = (time.perf_counter() - started) / len(fresh)
        rows = rows_of(logits, steered, answers, lambda: watch.seconds(begin, ready) / len(fresh), apply_s)
        for place, sequence in fresh.items():
            request, answer = params[place]["__req__"], answers[place]
            if isinstance(answer, Failure):
                self._end(request, answer.failure, answer.message)
            elif place in steered.wrong:
                self._end(request, *steered.wrong[place])
            else:
                row = rows(place, sequence.compile_s, len(self._sequences))
                report(sequence, request, row, KEY)
                sequence.compile_s = 0.0
        return steered.logits

    def _running(self, logits: "torch.Tensor", params: list[dict[str, Any]]) -> dict[int, Sequence]:
        """The rows that need a mask now, by their place; new ones are opened."""
        found: dict[int, Sequence] = {}
        for place, given in enumerate(params):
            request = given["__req__"]
            if "about" in given:
                request.customized_info = {KEY: [about(given["about"])]}
            if "order" not in given or over(request) or in_prompt(request):
                continue
            if logits.shape[1] != self._vocabulary.width:
                wanted = self._vocabulary.width
                self._end(request, "deployment", f"the server has {logits.shape[1]} logits, the harness knows {wanted}")
            elif (sequence := self._sequences.get(request.rid)) is not None:
                found[place] = sequence
            elif (opened := self._open(request, given["order"])) is not None:
                found[place] = opened
        return found

    def _open(self, request: Any, order: str) -> Sequence | None:
        asked = msgspec.json.decode(order, type=Order)
        try:
            masker = self._masker(asked.method)
        except HarnessError as error:
            self._end(request, "processor", f"{error.found} (inside the server)")
            return None
        rid = str(request.rid)
        masker.open(Request(rid, "", (), asked.constraint, asked.method, Sampling(1)))
        # the server gives a weak proxy; a bound method leads to the object, whose end can then be noticed
        watched = weakref.ref(request.finished.__self__, lambda _: self._note_gone(rid))
        self._sequences[rid] = Sequence(rid, masker, watched)
        return self._sequences[rid]

    def _masker(self, method: Processor | AsyncProcessor) -> Masker:
        if method not in self._maskers:
            self._maskers[method] = masker_for(method, self._vocabulary)
        return self._maskers[method]

    def _wait_until_compiled(self, running: dict[int, Sequence], params: list[dict[str, Any]]) -> None:
        """Wait for new constraints; those that fail are ended and leave `running`."""
        for place, sequence in list(running.items()):
            while (ready := sequence.masker.ready(sequence.id)) is False:
                time.sleep(POLL_S)
            if isinstance(ready, Failure):
                self._end(params[place]["__req__"], ready.failure, ready.message)
                del running[place]
            elif sequence.told == 0 and not sequence.rows:
                sequence.compile_s = sequence.masker.compile_s(sequence.id)

    def _tell(self, sequence: Sequence, request: Any) -> bool:
        """Whether the request's history is up to date; one that is behind is ended, because its masks would be wrong
        without a word."""
        if lag := tell(sequence, request):
            self._end(request, "rejected", STALE.format(lag=lag))
        return not lag

    def _collect(self, fresh: Mapping[int, Sequence], logits: "torch.Tensor") -> dict[int, Steering]:
        groups: dict[Masker, dict[str, int]] = {}
        for place, sequence in fresh.items():
            groups.setdefault(sequence.masker, {})[sequence.id] = place
        for masker, places in groups.items():
            masker.start(list(places))
        answers: dict[int, Steering] = {}
        for masker, places in groups.items():
            whole = len(places) == len(logits)
            given = masker.collect(list(places), logits if whole else logits[list(places.values())])
            answers |= {place: given[rid] for rid, place in places.items()}
        return answers

    def _end(self, request: Any, kind: FailureKind, message: str) -> None:
        from sglang.srt.managers.schedule_batch import FINISH_ABORT

        request.to_finish = FINISH_ABORT(message, 400, FAILED + kind)

    def _note_gone(self, rid: str) -> None:
        """The server has dropped a request: free it now, or after the step that is under way."""
        self._gone.append(rid)
        if not self._busy:
            self._let_go()

    def _let_go(self) -> None:
        """Free what belongs to requests that have ended."""
        self._gone += [rid for rid, sequence in self._sequences.items() if sequence.ended()]
        while self._gone:
            if sequence := self._sequences.pop(self._gone.pop(), None):
                sequence.masker.close(sequence.id)


def about(name: str) -> dict[str, str]:
    """Whether the engine `name` can be had in this process, and in which version."""
    try:
        return {"python": platform.python_version(), "version": engine(name).version()}
    except HarnessError as error:
        return {"python": platform.python_version(), "missing": error.found}


def started(path: str) -> Runtime:
    """The runtime of the bundle at `path`."""
    with zipfile.ZipFile(path) as bundle:
        return Runtime(msgspec.msgpack.decode(bundle.read(VOCABULARY), type=Vocabulary))
