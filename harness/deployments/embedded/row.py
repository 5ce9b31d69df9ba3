"""One request on its way through the loop: the ticket it waits with, then the row it has in the batch.

A row changes at every step, thousands of times a second, so it is the one thing here that is not a frozen value.
"""

import random
import time
from concurrent.futures import Future
from dataclasses import dataclass, field

import msgspec

from harness.processors.masker import Masker
from harness.request import Completion, Cost, Failure, FailureKind, Request, Timing, Trace

Outcome = Completion | Failure


@dataclass(frozen=True, eq=False)
class Ticket:
    """A request and the caller who waits for it. `sent_s` is the instant, `sent` the same on `time.perf_counter()`."""

    request: Request
    sent_s: float = field(default_factory=time.time)
    sent: float = field(default_factory=time.perf_counter)
    future: "Future[Outcome]" = field(default_factory=Future)

    def fail(self, kind: FailureKind, message: str) -> Failure:
        """A failure of this request, now."""
        return self.timed(Failure(self.request.id, kind, message))

    def timed(self, failure: Failure) -> Failure:
        """`failure` of this request, which it met now."""
        now = time.perf_counter() - self.sent
        return msgspec.structs.replace(failure, timing=Timing(self.sent_s, now, now))


@dataclass(frozen=True)
class Said:
    """One generated token and what is known about it (see `harness.request.Trace`). `at` is on `perf_counter()`."""

    token: int
    raw_logprob: float
    masked_logprob: float
    mass: float
    allowed: int | None
    wanted: int
    wanted_logprob: float
    at: float


@dataclass
class Spent:
    """Seconds that went into one row so far, and the steps it took part in."""

    forward_s: float = 0.0
    mask_s: float = 0.0
    wait_s: float = 0.0
    apply_s: float = 0.0
    steps: int = 0
    rows: int = 0

    def cost(self, compile_s: float | None) -> Cost:
        """The same as a value; `compile_s` None says that nothing masked the row: it has no time of masks then, not a
        time of 0."""
        mean_rows = self.rows / self.steps if self.steps else None
        if compile_s is None:
            return Cost(forward_s=self.forward_s, steps=self.steps, rows=mean_rows)
        return Cost(self.forward_s, self.mask_s, self.wait_s, self.apply_s, compile_s, self.steps, mean_rows)


@dataclass(eq=False)
class Row:
    """A request in the batch. `ids` are its prompt and what it said so far; `computed` of them have keys and values in
    `slot`. `draw` gives uniform numbers for sampling. `masker` is None where nothing constrains it."""

    ticket: Ticket
    masker: Masker | None
    slot: int
    cached: int
    computed: int
    ids: list[int]
    draw: random.Random
    said: list[Said] = field(default_factory=list)
    spelled: bytes = b""
    spent: Spent = field(default_factory=Spent)

    @property
    def id(self) -> str:
        return self.ticket.request.id

    @property
    def pending(self) -> int:
        """How many of its tokens are still to be computed before it can say the next one."""
        return len(self.ids) - self.computed

    def timing(self) -> Timing:
        times = tuple(said.at - self.ticket.sent for said in self.said)
        return Timing(self.ticket.sent_s, times[0], times[-1], times)

    def trace(self) -> Trace:
        return Trace(
            raw_logprob=tuple(said.raw_logprob for said in self.said),
            masked_logprob=tuple(said.masked_logprob for said in self.said),
            mass=tuple(said.mass for said in self.said),
            allowed=tuple(said.allowed for said in self.said),
            wanted=tuple(said.wanted for said in self.said),
            wanted_logprob=tuple(said.wanted_logprob for said in self.said),
        )
