"""Which sequences go through the model together in one step, and how many tokens of each."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.deployments.embedded.cache import Plan, causal_plan
from harness.deployments.embedded.row import Row


@dataclass(frozen=True)
class Pass:
    """One forward pass: the next `counts[i]` tokens of `rows[i]`. `bystanders` are the slots between theirs: they keep
    their place, so that the pass reads all keys and values as one view, and compute nothing that is kept."""

    rows: tuple[Row, ...]
    counts: tuple[int, ...]
    bystanders: tuple[int, ...] = ()

    def plan(self) -> Plan:
        """The pass as the cache understands it; sequences in order of slot, as in `order`."""
        places = {row.slot: (row.computed, row.ids[row.computed : row.computed + n]) for row, n in self.pairs()}
        places |= {slot: (0, []) for slot in self.bystanders}
        slots = sorted(places)
        return causal_plan(slots, [places[slot][0] for slot in slots], [places[slot][1] for slot in slots])

    def order(self) -> list[int]:
        """Where each of `rows` stands among the plan's sequences."""
        slots = sorted([*(row.slot for row in self.rows), *self.bystanders])
        return [slots.index(row.slot) for row in self.rows]

    def reach(self) -> int:
        """The length of the longest sequence when the pass is done."""
        return max(row.computed + n for row, n in self.pairs())

    def speaking(self) -> tuple[Row, ...]:
        """The rows that say a token after it."""
        return tuple(row for row, n in self.pairs() if row.pending == n)

    def pairs(self) -> Sequence[tuple[Row, int]]:
        """Each row with how many of its tokens go through."""
        return tuple(zip(self.rows, self.counts, strict=True))


def passes(rows: Sequence[Row], chunk: int, exact: bool) -> list[Pass]:
    """The passes of one step: every row that has one token to compute, and prompts up to `chunk` tokens, first come,
    first served. With `exact`, each row has a pass of its own."""
    ready = tuple(row for row in rows if row.pending == 1)
    prompts = tuple(row for row in rows if row.pending > 1)
    if exact:
        alone = [Pass((row,), (1,)) for row in ready]
        return alone + [Pass((row,), (min(row.pending, chunk),)) for row in prompts[:1]]
    together = [Pass(ready, (1,) * len(ready), _between(ready))] if ready else []
    return together + ([_prefill(prompts, chunk)] if prompts else [])


def _between(rows: Sequence[Row]) -> tuple[int, ...]:
    taken = {row.slot for row in rows}
    return tuple(slot for slot in range(min(taken), max(taken)) if slot not in taken)


def _prefill(prompts: Sequence[Row], chunk: int) -> Pass:
    """Prompts side by side as long as they cost at most `chunk` tokens, padding included."""
    chosen = [prompts[0]]
    longest = min(prompts[0].pending, chunk)
    for row in prompts[1:]:
        if max(longest, row.pending) * (len(chosen) + 1) <= chunk:
            chosen.append(row)
            longest = max(longest, row.pending)
    return Pass(tuple(chosen), tuple(min(row.pending, chunk) for row in chosen))
