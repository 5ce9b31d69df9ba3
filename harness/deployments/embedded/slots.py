"""Who sits in which slot, and what can be reused of those who sat there before.

Running sequences sit side by side from slot 0 on, so that a pass reads them as one view. A sequence that ended keeps
its tokens until its slot is needed, the longest unused first; a joining one copies the longest prefix that it shares
with any other *of the same owner*. The owner is what a request names as its cache: arms take turns on the same
examples, and one that found its prompts already computed by another would look faster than it is.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from harness.deployments.embedded.cache import KeyValues

NOBODY = ""
ANYONE = None


class Slots:
    """`total` slots of `store`. `ids[slot, :filled[slot]]` are the tokens whose keys and values are in `slot`. Without
    `reuse`, nothing of an ended sequence is kept."""

    def __init__(self, store: KeyValues, total: int, context: int, reuse: bool) -> None:
        self.store = store
        self._reuse = reuse
        self._ids: NDArray[np.int64] = np.full((total, context), -1, dtype=np.int64)
        self._filled = np.zeros(total, dtype=np.int64)
        self._expected = np.zeros(total, dtype=np.int64)
        self._owners = np.full(total, NOBODY, dtype=object)
        self._active = np.zeros(total, dtype=bool)
        self._last_used = np.zeros(total, dtype=np.int64)
        self._clock = 0

    def filled(self, slot: int) -> int:
        """How many tokens of the sequence in `slot` are computed."""
        return int(self._filled[slot])

    def soon(self, prompt: Sequence[int], owner: str) -> int:
        """How many tokens of `prompt` would be there if those now running were through with their prompts."""
        return self._shared(prompt, owner, self._expected)[0]

    def now(self, prompt: Sequence[int], owner: str | None) -> tuple[int, int]:
        """How many tokens of `prompt` are there, and in which slot. At least one token is always left to compute.
        `owner` None looks at everybody's."""
        return self._shared(prompt, owner, self._filled)

    def seat(self, prompt: Sequence[int], owner: str) -> tuple[int, int]:
        """Sit a new sequence down: its slot, and how many of its tokens were there already."""
        cached, source = self.now(prompt, owner)
        slot = int(np.flatnonzero(~self._active)[0])
        self._active[slot] = True
        if source != slot:
            self._save(slot, spare=source)
            self.store.copy(self.store, source, slot, cached)
        if cached:
            self._touch(source)
        self._put(slot, prompt, cached, owner)
        return slot, cached

    def extend(self, slot: int, tokens: Sequence[int]) -> None:
        """`tokens` of the sequence in `slot` were computed."""
        start = self._filled[slot]
        self._ids[slot, start : start + len(tokens)] = tokens
        self._filled[slot] += len(tokens)
        self._expected[slot] = max(self._expected[slot], self._filled[slot])

    def leave(self, slot: int) -> None:
        """The sequence in `slot` ended; what it computed stays for reuse."""
        self._active[slot] = False
        self._touch(slot)
        self._expected[slot] = self._filled[slot]
        if not self._reuse:
            self._filled[slot] = self._expected[slot] = 0

    def close_ranks(self) -> dict[int, int]:
        """Let the last ones move into the gaps; says who moved where."""
        moved: dict[int, int] = {}
        active = np.flatnonzero(self._active)
        gaps = np.flatnonzero(~self._active[: len(active)])
        for gap, last in zip(gaps, reversed(active), strict=False):
            self._active[gap] = True
            self._save(int(gap), spare=-1)
            self._move(int(last), int(gap))
            self._active[last] = False
            moved[int(last)] = int(gap)
        return moved

    def _shared(self, prompt: Sequence[int], owner: str | None, known: NDArray[np.int64]) -> tuple[int, int]:
        """The longest prefix of `prompt` within the first `known` tokens of any slot, and that slot."""
        wanted = np.asarray(prompt[:-1], dtype=np.int64)
        same = self._ids[:, : len(wanted)] == wanted
        length = np.where(same.all(axis=1), len(wanted), same.argmin(axis=1)) if len(wanted) else self._filled * 0
        length = np.minimum(length, known)
        if owner is not ANYONE:
            length = np.where(self._owners == owner, length, 0)
        if not self._reuse:
            length = length * 0
        best = int(length.argmax())
        return int(length[best]), best

    def _save(self, slot: int, spare: int) -> None:
        """Copy what an ended sequence left in `slot` to the slot that was unused longest (not to `spare`)."""
        free = [int(s) for s in np.flatnonzero(~self._active) if s not in (slot, spare)]
        if not free or not self._filled[slot]:
            return
        oldest = min(free, key=lambda s: (self._filled[s] > 0, self._last_used[s]))
        if self._last_used[oldest] < self._last_used[slot] or not self._filled[oldest]:
            self._move(slot, oldest)

    def _move(self, source: int, target: int) -> None:
        filled = self.filled(source)
        self.store.copy(self.store, source, target, filled)
        self._ids[target] = self._ids[source]
        for column in (self._filled, self._expected, self._owners, self._last_used):
            column[target] = column[source]
        self._filled[source] = self._expected[source] = 0

    def _touch(self, slot: int) -> None:
        self._clock += 1
        self._last_used[slot] = self._clock

    def _put(self, slot: int, prompt: Sequence[int], cached: int, owner: str) -> None:
        self._ids[slot, : len(prompt)] = prompt
        self._filled[slot] = cached
        self._expected[slot] = len(prompt)
        self._owners[slot] = owner
