"""The numbers of one exchange: probabilities, mass, tokens, times and costs, summed over its parts."""

import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from harness.record import Part
from harness.request import Completion, Cost, Timing, Trace

N = TypeVar("N", int, float)


class Measures(msgspec.Struct, frozen=True):
    """As the fields of the same names in `harness.record.Slim`; `path` and `raw` are the confidences."""

    path: float | None
    raw: float | None
    mass: float | None
    forced: float | None
    tokens: int
    prompt_tokens: int
    cached_tokens: int | None
    sent_s: float
    ttft_s: float | None
    e2e_s: float | None
    tpot_s: float | None
    cost: Cost


def measures(parts: Sequence[Part], judged: frozenset[str], late_s: float = 0.0) -> Measures:
    """The numbers of `parts`; confidences are taken over the sections named in `judged`, the mask's doings over those
    of them that this arm constrained. `late_s` is how long the request queued at the client."""
    completions = [part.result for part in parts if isinstance(part.result, Completion)]
    said = [part.result.trace for part in parts if part.section in judged and isinstance(part.result, Completion)]
    held = [part.result.trace for part in parts if part.constrained and isinstance(part.result, Completion)]
    timings = [part.result.timing for part in parts if part.result.timing is not None]
    ttft_s = timings[0].first_token_s + late_s if completions else None
    e2e_s = _end_to_end(timings) + late_s if completions else None
    tokens = sum(completion.completion_tokens for completion in completions)
    return Measures(
        path=_probability(said, "masked_logprob"),
        raw=_probability(said, "raw_logprob"),
        mass=_product_of_mass(held),
        forced=_share_forced(held),
        tokens=tokens,
        prompt_tokens=sum(completion.prompt_tokens for completion in completions),
        cached_tokens=_sum_known(completion.cached_tokens for completion in completions),
        sent_s=timings[0].sent_s - late_s if timings else 0.0,
        ttft_s=ttft_s,
        e2e_s=e2e_s,
        tpot_s=(e2e_s - ttft_s) / (tokens - 1) if ttft_s is not None and e2e_s is not None and tokens > 1 else None,
        cost=total_cost([completion.cost for completion in completions]),
    )


def total_cost(costs: Sequence[Cost]) -> Cost:
    """The costs of several parts together; unknown stays unknown. `rows` is weighted by steps."""
    steps = _sum_known(cost.steps for cost in costs)
    weighted = _sum_known(None if c.rows is None or c.steps is None else c.rows * c.steps for c in costs)
    return Cost(
        forward_s=_sum_known(cost.forward_s for cost in costs),
        mask_s=_sum_known(cost.mask_s for cost in costs),
        wait_s=_sum_known(cost.wait_s for cost in costs),
        apply_s=_sum_known(cost.apply_s for cost in costs),
        compile_s=_sum_known(cost.compile_s for cost in costs),
        steps=steps,
        rows=weighted / steps if weighted is not None and steps else None,
    )


def _end_to_end(timings: Sequence[Timing]) -> float:
    return timings[-1].sent_s + timings[-1].done_s - timings[0].sent_s


def _probability(traces: Sequence[Trace | None], column: str) -> float | None:
    """The probability of all tokens of these traces; None where one is not known or is not a number."""
    total = 0.0
    for trace in traces:
        values = getattr(trace, column, None)
        if not values or any(value is None or math.isnan(value) for value in values):
            return None
        total += sum(values)
    return min(1.0, math.exp(total)) if traces else None


def _product_of_mass(traces: Sequence[Trace | None]) -> float | None:
    if not traces or any(trace is None or None in trace.mass for trace in traces):
        return None
    return math.prod(mass for trace in traces if trace is not None for mass in trace.mass if mass is not None)


def _share_forced(traces: Sequence[Trace | None]) -> float | None:
    counts = [count for trace in traces if trace is not None for count in trace.allowed if count is not None]
    return sum(count == 1 for count in counts) / len(counts) if counts else None


def _sum_known(values: Iterable[N | None]) -> N | None:
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known else None
