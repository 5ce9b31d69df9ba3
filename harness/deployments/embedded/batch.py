"""Who runs and who waits: requests join once their masks can be made and a seat is free, and leave at any step."""

from collections.abc import Sequence
from time import perf_counter

from harness.deployments.embedded.callers import hand_over
from harness.deployments.embedded.ending import ended
from harness.deployments.embedded.passes import Pass, Rules, passes
from harness.deployments.embedded.row import Outcome, Row, Said, Ticket
from harness.deployments.embedded.sampling import stream
from harness.deployments.embedded.slots import Slots
from harness.deployments.embedded.step import Spoken
from harness.processors.masker import Masker
from harness.request import Failure
from harness.vocabulary import Vocabulary

_WORTH_WAITING = 32
"""A request waits where so many more of its prompt tokens are just being computed for another."""


class Batch:
    """The requests of one loop. `seats` is how many may run at once."""

    def __init__(self, slots: Slots, vocabulary: Vocabulary, rules: Rules, seats: int, seed: int) -> None:
        self._slots, self._vocabulary, self._rules = slots, vocabulary, rules
        self._seats, self._seed = seats, seed
        self._waiting: list[tuple[Ticket, Masker | None]] = []
        self._rows: list[Row] = []

    def __len__(self) -> int:
        """How many run or wait."""
        return len(self._rows) + len(self._waiting)

    @property
    def running(self) -> bool:
        """Whether a step would do anything."""
        return bool(self._rows)

    def tickets(self) -> list[Ticket]:
        """Everybody who waits for an answer."""
        return [ticket for ticket, _ in self._waiting] + [row.ticket for row in self._rows]

    def arrive(self, ticket: Ticket, masker: Masker | None) -> None:
        """A new request; its constraint starts to be compiled."""
        if any(other.request.id == ticket.request.id for other in self.tickets()):
            twice = ticket.fail("rejected", f"a request with the id {ticket.request.id!r} is running already")
            hand_over(ticket.future, twice)
            return
        if masker is not None:
            masker.open(ticket.request)
        self._waiting.append((ticket, masker))

    def drop_cancelled(self) -> None:
        """Forget the requests whose callers went away."""
        for row in [row for row in self._rows if row.ticket.future.cancelled()]:
            self._leave(row)
        for waiting in [waiting for waiting in self._waiting if waiting[0].future.cancelled()]:
            self._turn_away(*waiting)

    def seat(self) -> None:
        """Let those join who are ready, in the order they came, and close the gaps of those who left."""
        for ticket, masker in list(self._waiting):
            ready = True if masker is None else masker.ready(ticket.request.id)
            if isinstance(ready, Failure):
                self._turn_away(ticket, masker)
                hand_over(ticket.future, ticket.timed(ready))
            elif ready and len(self._rows) < self._seats and not self._better_later(ticket):
                self._sit_down(ticket, masker)
        moved = self._slots.close_ranks()
        for row in self._rows:
            row.slot = moved.get(row.slot, row.slot)

    def passes(self) -> list[Pass]:
        """The forward passes of the next step."""
        return passes(self._rows, self._rules)

    def hear(self, spoken: Sequence[Spoken]) -> None:
        """Take what the rows said; answer and let go those that are done."""
        for each in spoken:
            if (outcome := self._heard(each)) is not None:
                self._leave(each.row)
                hand_over(each.row.ticket.future, outcome)
            elif each.row.masker is not None:
                self._tell(each.row, each.row.masker)

    def _heard(self, spoken: Spoken) -> Outcome | None:
        match spoken.result:
            case Said() as said:
                spoken.row.said.append(said)
                spoken.row.ids.append(said.token)
                return ended(spoken.row, self._vocabulary)
            case Failure() as failure:
                return spoken.row.ticket.timed(failure)

    def _tell(self, row: Row, masker: Masker) -> None:
        begin = perf_counter()
        masker.token(row.id, row.said[-1].token)
        row.spent.wait_s += perf_counter() - begin

    def _better_later(self, ticket: Ticket) -> bool:
        prompt, owner = ticket.request.prompt_ids, ticket.request.cache
        return self._slots.soon(prompt, owner) - self._slots.now(prompt, owner)[0] >= _WORTH_WAITING

    def _sit_down(self, ticket: Ticket, masker: Masker | None) -> None:
        request = ticket.request
        slot, cached = self._slots.seat(request.prompt_ids, request.cache)
        draw = stream(request, self._seed)
        self._rows.append(Row(ticket, masker, slot, cached, cached, list(request.prompt_ids), draw))
        self._waiting.remove((ticket, masker))

    def _turn_away(self, ticket: Ticket, masker: Masker | None) -> None:
        self._waiting.remove((ticket, masker))
        if masker is not None:
            masker.close(ticket.request.id)

    def _leave(self, row: Row) -> None:
        self._rows.remove(row)
        self._slots.leave(row.slot)
        if row.masker is not None:
            row.masker.close(row.id)
