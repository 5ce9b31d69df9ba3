"""Traces of answers from a server: which number is which, and which the server never says.

What a generation reports is taken after the mask and after temperature (at temperature 0 the softmax of temperature 1).
So at temperature 0 it is the masked log-probability, and the unmasked one where there was no mask. Anything else is
scored afterwards: prompt and answer go through the model once more, unmasked, at temperature 1. Prefill and decode add
up in another order, so such a number carries the noise that preflight measures. What neither tells stays None.
"""

import math
from collections.abc import Sequence

import msgspec

from harness.deployments.inside.telemetry import Told
from harness.deployments.sglang.values import TokenLogprob
from harness.request import Trace


class Seen(msgspec.Struct, frozen=True):
    """What is known of an answer once it is there. `said` are the reported log-probabilities, `told` what a processor
    in the server reported (None: there was none, or not of every token). `masked`: a mask, or a processor, was on."""

    token_ids: tuple[int, ...]
    said: tuple[float, ...]
    told: tuple[Told, ...] | None
    masked: bool
    greedy: bool

    @property
    def rewritten(self) -> bool:
        """Whether a processor gave new logits: then no mass tells the unmasked log-probability from the masked one."""
        return self.told is not None and any(row.rewritten for row in self.told)

    @property
    def whole(self) -> bool:
        """Whether nothing has to be scored."""
        return self.greedy and (not self.masked or (self.told is not None and not self.rewritten))


def first_trace(seen: Seen) -> Trace:
    """The trace from the answer alone; whole where `seen.whole`."""
    count = len(seen.token_ids)
    nothing = (None,) * count
    if not seen.masked:
        known = seen.said if seen.greedy else nothing
        ids = seen.token_ids if seen.greedy else nothing
        return Trace(known, known, (1.0,) * count, nothing, ids, known)
    masked = seen.said if seen.greedy else nothing
    if seen.told is None:
        return Trace(nothing, masked, nothing, nothing, nothing, nothing)
    raw: tuple[float | None, ...] = nothing
    if seen.greedy and not seen.rewritten:
        raw = tuple(min(0.0, said + row.log_mass) for said, row in zip(seen.said, seen.told, strict=True))
    return Trace(
        raw_logprob=raw,
        masked_logprob=masked,
        mass=tuple(min(1.0, math.exp(row.log_mass)) for row in seen.told),
        allowed=tuple(row.allowed for row in seen.told),
        wanted=tuple(row.wanted for row in seen.told),
        wanted_logprob=tuple(row.wanted_logprob for row in seen.told),
    )


def completed(seen: Seen, trace: Trace, scored: Sequence[TokenLogprob]) -> Trace:
    """The trace with the unmasked values of `scored`, which has the most likely token at each place."""
    raw = tuple(token.logprob for token in scored)
    if seen.told is None:
        wanted = tuple(token.top[0].id for token in scored)
        best = tuple(token.top[0].logprob for token in scored)
        trace = msgspec.structs.replace(trace, wanted=wanted, wanted_logprob=best)
    masked, mass = trace.masked_logprob, trace.mass
    if not seen.masked:
        masked = raw
    elif seen.told is None and seen.greedy:
        mass = tuple(min(1.0, math.exp(own - said)) for own, said in zip(raw, seen.said, strict=True))
    elif seen.told is not None and not seen.greedy and not seen.rewritten:
        masked = tuple(min(0.0, own - row.log_mass) for own, row in zip(raw, seen.told, strict=True))
    return msgspec.structs.replace(trace, raw_logprob=raw, masked_logprob=masked, mass=mass)
