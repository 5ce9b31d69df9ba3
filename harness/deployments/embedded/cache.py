"""Keys and values of many sequences in fixed slots, shown to transformers through its own `Cache` interface.

Each forward pass is told by a `Plan` which slots it reads and where it writes. Rows that sit side by side are read as a
view, without copying a byte; transformers' own growing cache copies all of it at every layer of every step.

Plans are rounded up to sizes at which the CPU's kernels add in the same order, whatever the batch (see
docs/decisions/0006-embedded-equal-sums.md). What is added to reach such a size is padding, and changes no result.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import torch
from transformers.cache_utils import Cache, CacheLayerMixin

_KEEP = 4
"""Where prompts are computed, the logits of so many tokens of each are taken."""
_READ_BY = 32
"""How much of the slots is read is a multiple of this ..."""
_PROMPTS_READ = 384
"""... and at least this where prompts are computed."""
_PROMPT_BY = 16
"""The tokens of each prompt in a pass are a multiple of this."""


class Shape(msgspec.Struct, frozen=True):
    """Layers of equal attention: heads of keys and values, and the sizes of one key and one value."""

    layers: int
    heads: int
    key_size: int
    value_size: int


class Plan(msgspec.Struct, frozen=True):
    """One forward pass over `k` sequences, `q` tokens each, aligned at their ends (shorter ones start with padding).

    `slots`: where each sequence sits. `ids`, `positions`: shape `(k, q)`. `mask`: bool, shape `(k, 1, q, length)`, what
    each token may look at. `real`: which of the `k * q` tokens are no padding, or None for all. `write_slots`,
    `write_at`: where each real token's key and value go, in reading order. `length`: how much of the slots is read.
    `keep`: how many logits are wanted at the end of each sequence.
    """

    slots: tuple[int, ...]
    ids: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor
    real: torch.Tensor | None
    write_slots: torch.Tensor
    write_at: torch.Tensor
    length: int
    keep: int = 1


class KeyValues:
    """The memory: one tensor of keys and one of values, shape `(layers, slots, heads, capacity, size)`. It grows with
    the longest sequence seen and is zeroed, so that what is masked is finite."""

    def __init__(self, shape: Shape, slots: int, dtype: torch.dtype, device: torch.device) -> None:
        self._shape, self._slots = shape, slots
        self._options: dict[str, Any] = {"dtype": dtype, "device": device}
        self.capacity = 0
        self.keys = self._zeros(0, shape.key_size)
        self.values = self._zeros(0, shape.value_size)

    def reserve(self, length: int) -> None:
        """Make room for sequences of `length` tokens; what is there stays."""
        if length <= self.capacity:
            return
        capacity = max(256, 2 * self.capacity, -(-length // 64) * 64)
        self.keys = self._grown(self.keys, capacity, self._shape.key_size)
        self.values = self._grown(self.values, capacity, self._shape.value_size)
        self.capacity = capacity

    def copy(self, origin: "KeyValues", source: int, target: int, length: int) -> None:
        """The first `length` tokens of slot `source` of `origin`, to slot `target` of this."""
        self.keys[:, target, :, :length].copy_(origin.keys[:, source, :, :length])
        self.values[:, target, :, :length].copy_(origin.values[:, source, :, :length])

    def _zeros(self, capacity: int, size: int) -> torch.Tensor:
        with torch.inference_mode(False):  # else it could not be written to outside that mode
            return torch.zeros((self._shape.layers, self._slots, self._shape.heads, capacity, size), **self._options)

    def _grown(self, old: torch.Tensor, capacity: int, size: int) -> torch.Tensor:
        new = self._zeros(capacity, size)
        new[:, :, :, : old.shape[3]].copy_(old)
        return new


class SlotCache(Cache):
    """What a model sees of `KeyValues` during one forward pass."""

    def __init__(self, store: KeyValues, layers: int) -> None:
        self._store = store
        self.plan: Plan | None = None
        super().__init__(layers=[_Layer(self, store, layer) for layer in range(layers)])

    def follow(self, plan: Plan) -> None:
        """The next forward pass is `plan`."""
        self._store.reserve(plan.length)
        self.plan = plan


class _Layer(CacheLayerMixin):  # type: ignore[no-untyped-call]  # transformers is typed in part
    """One layer: takes the new keys and values of a pass, gives those that its tokens may look at."""

    is_sliding = False

    def __init__(self, cache: SlotCache, store: KeyValues, layer: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._cache, self._store, self._layer = cache, store, layer
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_args: Any, **_kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        plan = self._plan
        keys, values = self._store.keys[self._layer], self._store.values[self._layer]
        keys[plan.write_slots, :, plan.write_at] = _in_order(key_states, plan.real)
        values[plan.write_slots, :, plan.write_at] = _in_order(value_states, plan.real)
        return _read(keys, plan), _read(values, plan)

    @property
    def _plan(self) -> Plan:
        assert self._cache.plan is not None, "a forward pass without a plan"
        return self._cache.plan

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Nothing to do: the store is there from the start."""

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._plan.length, 0

    def get_seq_length(self) -> int:
        return self._plan.length

    def get_max_length(self) -> int:
        return -1


def _in_order(states: torch.Tensor, real: torch.Tensor | None) -> torch.Tensor:
    """`(k, heads, q, size)` as `(tokens, heads, size)`, without padding."""
    by_token = states.transpose(1, 2).flatten(0, 1)
    return by_token if real is None else by_token[real]


def _read(store: torch.Tensor, plan: Plan) -> torch.Tensor:
    first, count = plan.slots[0], len(plan.slots)
    if plan.slots == tuple(range(first, first + count)):
        return store[first : first + count, :, : plan.length]
    return store[list(plan.slots), :, : plan.length]


def causal_plan(
    slots: Sequence[int], starts: Sequence[int], chunks: Sequence[Sequence[int]], prompts: bool = True
) -> Plan:
    """The next tokens of some sequences: `chunks[i]` goes to `slots[i]` at the positions from `starts[i]` on. An empty
    chunk is a sequence that only keeps its place between others. Without `prompts`, no chunk is longer than a token."""
    end = max(start + len(chunk) for start, chunk in zip(starts, chunks, strict=True) if chunk)
    length = max(_up(end, _READ_BY), _PROMPTS_READ if prompts else 0)
    wide = _up(max(map(len, chunks)), _PROMPT_BY) if prompts else 1
    ids = torch.tensor([[0] * (wide - len(chunk)) + list(chunk) for chunk in chunks])
    offsets = torch.arange(wide) - torch.tensor([wide - len(chunk) for chunk in chunks])[:, None]
    positions = torch.where(offsets < 0, 0, torch.tensor(starts)[:, None] + offsets)
    real = (offsets >= 0).flatten().nonzero()[:, 0]
    return Plan(
        slots=tuple(slots),
        ids=ids,
        positions=positions,
        mask=(torch.arange(length) <= positions[:, :, None])[:, None],
        real=real if len(real) < ids.numel() else None,
        write_slots=torch.tensor(slots).repeat_interleave(wide)[real],
        write_at=positions.flatten()[real],
        length=length,
        keep=_KEEP if prompts else 1,
    )


def _up(size: int, step: int) -> int:
    return -(-size // step) * step
