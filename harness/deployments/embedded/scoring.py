"""Log-probabilities of many continuations of one prompt, whose keys and values are computed once."""

from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import torch

from harness.deployments.embedded.cache import causal_plan
from harness.deployments.embedded.callers import hand_over
from harness.deployments.embedded.model import Model
from harness.deployments.embedded.slots import ANYONE, Slots
from harness.deployments.embedded.tree import PROMPT, tree, tree_plan
from harness.request import Scores


@dataclass(frozen=True, eq=False)
class ScoreTicket:
    """A prompt, its continuations (none of them empty), and the caller who waits."""

    prompt: tuple[int, ...]
    continuations: tuple[tuple[int, ...], ...]
    future: "Future[tuple[Scores, ...]]" = field(default_factory=Future)


class Scorer:
    """Scores on one model, one ticket at a time, in memory of its own. With `reuse`, what the last score or the slots
    hold of a prompt is not computed again, whosever it is: nothing is timed here. `chunk` tokens go through the model
    at once."""

    def __init__(self, model: Model, slots: Slots, chunk: int, reuse: bool) -> None:
        self._model, self._slots, self._chunk, self._reuse = model, slots, chunk, reuse
        self._held: Sequence[int] = ()
        self._store = model.store(1)
        self._cache = model.cache(self._store)
        self.waiting: deque[ScoreTicket] = deque()

    def serve(self) -> None:
        """Answer the ticket that came first, if there is one."""
        if self.waiting:
            ticket = self.waiting.popleft()
            if not ticket.future.cancelled():
                hand_over(ticket.future, self.score(ticket.prompt, ticket.continuations))

    def score(self, prompt: Sequence[int], continuations: Sequence[Sequence[int]]) -> tuple[Scores, ...]:
        """The scores of the continuations, in their order."""
        branches = tree(continuations)
        asked: dict[int, set[int]] = {}
        for path, tokens in zip(branches.paths, continuations, strict=True):
            for node, token in zip(path, tokens, strict=True):
                asked.setdefault(node, set()).add(token)
        told = _read(self._after_prompt(prompt), [PROMPT], asked)
        looks = branches.ancestors()
        for first in range(0, len(branches.tokens), self._chunk):
            last = min(first + self._chunk, len(branches.tokens))
            logits = self._model.forward(self._cache, tree_plan(branches, looks, len(prompt), first, last))[0]
            told |= _read(logits, range(first, last), asked)
        return tuple(
            Scores(tuple(tokens), tuple(told[node, token] for node, token in zip(path, tokens, strict=True)))
            for path, tokens in zip(branches.paths, continuations, strict=True)
        )

    def _after_prompt(self, prompt: Sequence[int]) -> torch.Tensor:
        """The logits after the prompt, shape `(1, width)`; its keys and values are in the store then."""
        start = self._found(prompt) if self._reuse else 0
        self._held = prompt
        while True:
            chunk = prompt[start : start + self._chunk]
            logits = self._model.forward(self._cache, causal_plan((0,), (start,), (chunk,)))[0, -1:]
            start += len(chunk)
            if start == len(prompt):
                return logits

    def _found(self, prompt: Sequence[int]) -> int:
        """How many tokens of `prompt` are in the store, some perhaps copied from a slot. The last one never counts."""
        held = _common(self._held, prompt[:-1])
        start, slot = self._slots.now(prompt, ANYONE)
        if start <= held:
            return held
        self._store.reserve(start)
        self._store.copy(self._slots.store, slot, 0, start)
        return start


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many first ids two sequences share."""
    differ = (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differ, min(len(one), len(other)))


def _read(logits: torch.Tensor, nodes: Iterable[int], asked: dict[int, set[int]]) -> dict[tuple[int, int], float]:
    """The log-probability of every token asked for after `nodes`, whose logits have shape `(nodes, width)`."""
    pairs = [(row, node, token) for row, node in enumerate(nodes) for token in sorted(asked[node])]
    rows, tokens = [row for row, _, _ in pairs], [token for _, _, token in pairs]
    values = logits.log_softmax(-1)[rows, tokens].tolist()
    return {(node, token): value for (_, node, token), value in zip(pairs, values, strict=True)}
