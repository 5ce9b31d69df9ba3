"""Putting masks, or a processor's new logits, on the logits of a step."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from harness.mask import words
from harness.processors.masker import Masked, Rewritten, Steering
from harness.request import FailureKind

Packed = NDArray[np.int32]
"""Masks as bits, one row each."""

IMPOSSIBLE = -1e30
"""A processor forbids a token by minus infinity or by its type's lowest number; whatever is below this is forbidden."""


NO_TOKEN = "the mask allows no token at all, not even the end"


class Steered(NamedTuple):
    """Logits with the masks on them, shape `(n, width)`; how many tokens each row may say (None: no mask); and what is
    wrong with a row."""

    logits: torch.Tensor
    allowed: list[int | None]
    wrong: dict[int, tuple[FailureKind, str]]


def steer(raw: torch.Tensor, answers: Mapping[int, Steering]) -> Steered:
    """Apply `answers` (by row) to `raw`, float32, shape `(n, width)`, which is not changed. Rows without an answer stay
    as they are."""
    masked = {index: answer for index, answer in answers.items() if isinstance(answer, Masked)}
    rewritten = {index: answer.logits for index, answer in answers.items() if isinstance(answer, Rewritten)}
    steered = _masked(raw, masked) if masked else Steered(raw.clone() if rewritten else raw, [None] * len(raw), {})
    for index, given in rewritten.items():
        if found := _fault(given, raw.shape[1]):
            steered.wrong[index] = ("processor", found)
        else:
            steered.logits[index] = _without_impossible(given).to(raw.device)
            steered.allowed[index] = int(torch.isfinite(steered.logits[index]).sum())
    return steered


def _masked(raw: torch.Tensor, masked: Mapping[int, Masked]) -> Steered:
    """The masks on logits of their own."""
    packed = _packed(masked, len(raw), raw.shape[1])
    counts = np.bitwise_count(packed.view(np.uint32)).sum(axis=1).tolist()  # of a signed int it counts the magnitude's
    allowed = [counts[index] if index in masked else None for index in range(len(raw))]
    wrong: dict[int, tuple[FailureKind, str]] = {
        index: ("processor", NO_TOKEN) for index in masked if not counts[index]
    }
    return Steered(_forbidden(packed, raw).add_(raw), allowed, wrong)


def _packed(masked: Mapping[int, Masked], count: int, width: int) -> Packed:
    """The masks of all rows, shape `(count, words)`: all ones where there is none, no bit past the width."""
    packed = np.full((count, words(width)), -1, dtype=np.int32)
    for index, answer in masked.items():
        packed[index] = answer.mask
    if rest := width % 32:
        packed[:, -1] &= (1 << rest) - 1
    return packed


def _forbidden(packed: Packed, raw: torch.Tensor) -> torch.Tensor:
    """Zero where a token is allowed, minus infinity where it is not. Made from bits, because to choose element by
    element costs twenty times more on masks that are mixed."""
    bits = _unpacked(packed, raw.device)[:, : raw.shape[1]]
    return bits.to(torch.int32).sub_(1).bitwise_and_(_MINUS_INFINITY).view(torch.float32)


_MINUS_INFINITY = -(1 << 23)
"""The bits of float32's minus infinity, read as an int32."""


def _unpacked(packed: Packed, device: torch.device) -> torch.Tensor:
    """One int8 a token, 1 where its bit is set."""
    if device.type == "cpu":
        bits = np.unpackbits(packed.view(np.uint8), axis=1, bitorder="little")
        return torch.from_numpy(bits.view(np.int8))
    on_device = torch.from_numpy(packed).pin_memory().to(device, non_blocking=True)
    places = torch.arange(32, dtype=torch.int32, device=device)
    return ((on_device[:, :, None] >> places) & 1).to(torch.int8).flatten(1)


def _fault(logits: torch.Tensor, width: int) -> str:
    """What is wrong with a processor's logits; empty if nothing is."""
    if tuple(logits.shape) != (width,):
        return f"the processor returned shape {tuple(logits.shape)}; wanted ({width},)"
    if not logits.is_floating_point():
        return f"the processor returned {logits.dtype}; wanted float32"
    if bool(torch.isnan(logits).any()):
        return "the processor returned NaN"
    largest = float(logits.max())
    if largest == torch.inf:
        return "the processor returned plus infinity"
    return "" if largest > IMPOSSIBLE else "the processor left no token possible"


def _without_impossible(logits: torch.Tensor) -> torch.Tensor:
    wide = logits.float()
    return wide.masked_fill(wide <= IMPOSSIBLE, -torch.inf)
