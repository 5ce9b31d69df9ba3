"""Which sequences go through the model together in one step, and how many tokens of each."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.deployments.embedded.cache import Plan, causal_plan
from harness.deployments.embedded.row import Row


@dataclass(frozen=True)
class Pass:
    """One forward pass: the next `counts[i]` tokens of `rows[i]`, of their prompts or the one they said last.
    `bystanders` are slots among and behind theirs, so that the pass reads all keys and values as one view; they compute
    nothing that is kept."""

    rows: tuple[Row, ...]
    counts: tuple[int, ...]
    prompts: bool
    bystanders: tuple[int, ...] = ()

    def plan(self) -> Plan:
        """The pass as the cache understands it; sequences in order of slot, as in `order`."""
        places = {row.slot: (row.computed, row.ids[row.computed : row.computed + n]) for row, n in self.pairs()}
        places |= {slot: (0, []) for slot in self.bystanders}
        slots = sorted(places)
        starts, chunks = zip(*(places[slot] for slot in slots), strict=True)
        return causal_plan(slots, starts, chunks, self.prompts)

    def order(self) -> list[int]:
        """Where each of `rows` stands among the plan's sequences."""
        slots = sorted([*(row.slot for row in self.rows), *self.bystanders])
        return [slots.index(row.slot) for row in self.rows]

    def speaking(self) -> tuple[Row, ...]:
        """The rows that say a token after it."""
        return tuple(row for row, n in self.pairs() if row.pending == n)

    def pairs(self) -> Sequence[tuple[Row, int]]:
        """Each row with how many of its tokens go through."""
        return tuple(zip(self.rows, self.counts, strict=True))


@dataclass(frozen=True)
class Rules:
    """How rows are put together: `chunk` and `exact` as in `config.Embedded`, `beside` as in `model.Model`."""

    chunk: int
    exact: bool
    beside: int


def passes(rows: Sequence[Row], rules: Rules) -> list[Pass]:
    """The passes of one step: every row that said something, and prompts up to a chunk, first come, first served."""
    talking = tuple(row for row in rows if row.said)
    prompts = tuple(row for row in rows if not row.said)
    if rules.exact:
        said = [Pass((row,), (1,), prompts=False) for row in talking]
    else:
        said = [Pass(talking, (1,) * len(talking), False, _beside(talking, rules.beside))] if talking else []
    return [*said, _prefill(prompts[:1] if rules.exact else prompts, rules.chunk)] if prompts else said


def _beside(rows: Sequence[Row], least: int) -> tuple[int, ...]:
    """The slots between those of `rows`, and as many behind as make `least`."""
    taken = {row.slot for row in rows}
    first = min(taken)
    return tuple(slot for slot in range(first, max(max(taken) + 1, first + least)) if slot not in taken)


def _prefill(prompts: Sequence[Row], chunk: int) -> Pass:
    """Prompts side by side as long as they cost at most `chunk` tokens, padding included."""
    chosen = [prompts[0]]
    longest = min(prompts[0].pending, chunk)
    for row in prompts[1:]:
        if max(longest, row.pending) * (len(chosen) + 1) <= chunk:
            chosen.append(row)
            longest = max(longest, row.pending)
    return Pass(tuple(chosen), tuple(min(row.pending, chunk) for row in chosen), prompts=True)
