"""A decoding loop in small, for tests of maskers: greedy, with logits drawn from the request's name and its tokens."""

import time
import zlib
from collections.abc import Mapping, Sequence

import torch

from harness.constraint import Constraint, Labels
from harness.mask import Mask, allowed
from harness.method import AsyncProcessor, Method, Processor
from harness.processors.masker import Masked, Masker, Rewritten, Steering
from harness.request import Failure, Request, Sampling
from harness.vocabulary import Vocabulary

_LETTERS = [bytes([code]) for code in range(32, 127)]
_PIECES = [b"yes", b"no", b" evidence", b"ev", b"id", b"found", b"ab", b"abc"]
STOP = len(_LETTERS) + len(_PIECES) + 1
WIDTH = STOP + 20
VOCABULARY = Vocabulary((*_LETTERS, *_PIECES, None, None), (STOP,), WIDTH)
LONGEST = 40


def request(name: str, constraint: Constraint, method: Method) -> Request:
    return Request(name, name, (1, 2, 3), constraint, method, Sampling(LONGEST))


def labelled(name: str, *labels: str, method: Processor | AsyncProcessor | None = None) -> Request:
    return request(name, Labels(labels), method or Processor())


def logits_of(name: str, tokens: Sequence[int]) -> torch.Tensor:
    seed = zlib.crc32(f"{name} {list(tokens)}".encode())
    return torch.randn(WIDTH, generator=torch.Generator().manual_seed(seed))


def steered(logits: torch.Tensor, steering: Masked | Rewritten) -> torch.Tensor:
    match steering:
        case Masked(mask=mask):
            return masked(logits, mask)
        case Rewritten(logits=rewritten):
            return rewritten


def masked(logits: torch.Tensor, mask: Mask) -> torch.Tensor:
    keep = torch.zeros(WIDTH, dtype=torch.bool)
    keep[torch.from_numpy(allowed(mask, WIDTH))] = True
    return logits.masked_fill(~keep, -torch.inf)


class Loop:
    """Requests under one masker; `said` holds the tokens of each, `failures` what went wrong."""

    def __init__(self, masker: Masker) -> None:
        self.masker = masker
        self.said: dict[str, list[int]] = {}
        self.failures: dict[str, Failure] = {}
        self.running: list[str] = []

    def open(self, *requests: Request) -> None:
        """Open requests and wait until they may join or have failed."""
        for each in requests:
            self.masker.open(each)
        for each in requests:
            self._join(each.id)

    def step(self, ahead: bool = True) -> Mapping[str, Steering]:
        """One token for every running request; `ahead`: the masker is told before the logits are made."""
        rows = list(self.running)
        if ahead:
            self.masker.start(rows)
        logits = torch.stack([logits_of(row, self.said[row]) for row in rows])
        before = logits.clone()
        answers = self.masker.collect(rows, logits)
        assert torch.equal(logits, before)
        for row, plain in zip(rows, logits, strict=True):
            self._say(row, plain, answers[row])
        return answers

    def run(self, *requests: Request) -> dict[str, str]:
        """Open requests and step until all have ended; what each said."""
        self.open(*requests)
        while self.running:
            self.step()
        return {each.id: self.text(each.id) for each in requests if each.id not in self.failures}

    def text(self, name: str) -> str:
        return VOCABULARY.text(self.said[name])

    def cancel(self, name: str) -> None:
        self.running.remove(name)
        self.masker.close(name)

    def _join(self, name: str) -> None:
        deadline = time.monotonic() + 60
        while not (ready := self.masker.ready(name)):
            assert time.monotonic() < deadline, f"{name} is never ready"
            time.sleep(0.001)
        self.said[name] = []
        self.running.append(name)
        if isinstance(ready, Failure):
            self._fail(ready)

    def _say(self, name: str, logits: torch.Tensor, answer: Steering) -> None:
        if isinstance(answer, Failure):
            self._fail(answer)
            return
        token = int(steered(logits, answer).argmax())
        self.said[name].append(token)
        if token == STOP or len(self.said[name]) == LONGEST:
            self.cancel(name)
        else:
            self.masker.token(name, token)

    def _fail(self, failure: Failure) -> None:
        self.failures[failure.request_id] = failure
        self.cancel(failure.request_id)
