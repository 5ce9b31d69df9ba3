"""The requests that a server runs, as a processor in it sees them: what each has said, and whether that is up to date.

A processor is called with whatever rows a step has: also for the middle pieces of a long prompt, for requests that have
ended, and anew after a request was put back to make room. So everything follows from the request's own tokens, never
from counting calls.
"""

import weakref
from dataclasses import dataclass, field
from typing import Any

from harness.processors.masker import Masker

STALE = (
    "the server shows processors a history that is {lag} token(s) behind; start it with SGLANG_ENABLE_DELAY_SAMPLE=1 "
    "or --disable-overlap-schedule"
)


@dataclass(eq=False)
class Sequence:
    """One request. `request` is a weak reference to the server's own object; `told` counts the tokens that the masker
    knows, `base` is how many there were at the latest prefill. `compile_s` is reported once."""

    id: str
    masker: Masker
    request: "weakref.ref[Any]"
    told: int = 0
    base: int = 0
    compile_s: float = 0.0
    rows: list[Any] = field(default_factory=list)

    def ended(self) -> bool:
        """Whether the server is through with it."""
        request = self.request()
        return request is None or over(request)


def over(request: Any) -> bool:
    """Whether the server's request has ended or is about to."""
    return request.to_finish is not None or bool(request.finished())


def in_prompt(request: Any) -> bool:
    """Whether this step computes a middle piece of its prompt: what is sampled then is thrown away."""
    return request.extend_end is not None and request.extend_end < len(request.origin_input_ids)


def tell(sequence: Sequence, request: Any) -> int:
    """Tell the masker what was said since; returns by how many tokens the server's history lags behind its steps."""
    said = request.output_ids
    if request.decode_batch_idx == 0:  # a prefill: the first one, or one after the request was put back
        sequence.base = len(said)
    for token in said[sequence.told :]:
        sequence.masker.token(sequence.id, int(token))
    sequence.told = len(said)
    lag: int = request.decode_batch_idx - (len(said) - sequence.base)
    return lag


def report(sequence: Sequence, request: Any, row: Any, key: str) -> None:
    """Attach `row` to the token that this step samples. A step whose token was thrown away is overwritten."""
    place = len(request.output_ids)
    sequence.rows[place:] = [None] * (place - len(sequence.rows)) + [row]
    if request.customized_info is None:
        request.customized_info = {}
    request.customized_info[key] = sequence.rows
