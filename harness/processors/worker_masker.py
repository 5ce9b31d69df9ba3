"""`processor` and `async` in a decoding loop: a `Masker` whose masks or new logits come from workers."""

import select
from collections.abc import Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING

from harness.errors import ConfigError
from harness.processors.masker import Steering
from harness.processors.seat import Seat
from harness.processors.seated import Seated
from harness.request import Failure, Request

if TYPE_CHECKING:
    import torch

WAIT_MS = 50
"""How long to wait for bytes before looking whether a worker died or hangs."""
STOP_S = 2.0


class WorkerMasker:
    """Spreads sequences over `seats`. `ahead`: what needs no logits is made from `start` on, not from `collect`;
    `rewrites`: the workers run users' code, which gets the logits."""

    def __init__(self, seats: Sequence[Seat], ahead: bool, rewrites: bool) -> None:
        self._seats = tuple(seats)
        self._ahead = ahead
        self._rewrites = rewrites
        self._keys = count(1)
        self._open: dict[str, tuple[Seated, Seat]] = {}

    def wait_until_started(self) -> None:
        """Wait until every worker has loaded its engine or code. Raises `ConfigError` where one cannot."""
        while waiting := [seat for seat in self._seats if not seat.ready]:
            self._wait(waiting)
            for refused in [seat.refused for seat in waiting if seat.refused]:
                self.stop()
                raise ConfigError(refused.found, refused.wanted, refused.fix)

    def open(self, request: Request) -> None:
        if request.constraint is None:
            raise ValueError(f"request {request.id!r} has no constraint, so no method takes part in it")
        if request.id in self._open:
            raise ValueError(f"request {request.id!r} is open already")
        seat = min(self._seats, key=len)
        sequence = Seated(request.id, next(self._keys), request.constraint)
        self._open[request.id] = sequence, seat
        seat.open(sequence)

    def ready(self, request_id: str) -> bool | Failure:
        sequence, seat = self._open[request_id]
        if sequence.compile_s is None and sequence.failure is None:
            seat.attend()
        return sequence.failure or sequence.compile_s is not None

    def compile_s(self, request_id: str) -> float:
        return self._open[request_id][0].compile_s or 0.0

    def start(self, request_ids: Sequence[str]) -> None:
        if self._ahead:
            for seat, sequences in self._by_seat(request_ids):
                seat.prepare(sequences)

    def collect(self, request_ids: Sequence[str], logits: "torch.Tensor") -> Mapping[str, Steering]:
        sequences = [self._open[request_id][0] for request_id in request_ids]
        if self._rewrites:
            for sequence, row in zip(sequences, logits.cpu(), strict=True):
                sequence.answer, sequence.logits = None, row
        groups = self._by_seat(request_ids)
        for seat, group in groups:
            seat.rewrite(group) if self._rewrites else seat.prepare(group)
            seat.hear()  # masks that were asked ahead are there already, as a rule
        while waiting := [seat for seat, group in groups if not all(s.settled for s in group)]:
            self._wait(waiting)
        return {s.request_id: settled for s in sequences if (settled := s.failure or s.answer)}

    def token(self, request_id: str, token: int) -> None:
        sequence, _ = self._open[request_id]
        sequence.tokens.append(token)
        sequence.answer = None

    def close(self, request_id: str) -> None:
        if opened := self._open.pop(request_id, None):
            sequence, seat = opened
            seat.close(sequence)

    def stop(self) -> None:
        self._open.clear()
        for seat in self._seats:
            seat.drop(STOP_S)

    def _by_seat(self, request_ids: Sequence[str]) -> list[tuple[Seat, list[Seated]]]:
        groups: dict[int, tuple[Seat, list[Seated]]] = {}
        for request_id in request_ids:
            sequence, seat = self._open[request_id]
            groups.setdefault(id(seat), (seat, []))[1].append(sequence)
        return list(groups.values())

    def _wait(self, seats: Sequence[Seat]) -> None:
        """Wait until a worker of `seats` sends something, but not long, and take it."""
        poller = select.poll()
        for seat in seats:
            poller.register(seat.worker.end.fileno(), seat.worker.end.events())
        poller.poll(WAIT_MS)
        for seat in seats:
            seat.attend()
