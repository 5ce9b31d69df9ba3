"""How the next token is chosen: the likeliest, or one drawn with the request's own random numbers.

A draw looks at one row alone and takes one uniform number, so it does not depend on batch mates. The stream of numbers
depends on the seeds and the prompt: equal prompts with equal seeds draw alike, in every arm.
"""

import random
from collections.abc import Sequence

import torch

from harness.request import Request, Sampling

_CANDIDATES = 1024
"""Tokens sorted at first when only the likeliest are wanted; the whole vocabulary is sorted where they are too few."""


def stream(request: Request, seed: int) -> random.Random:
    """The random numbers of `request` on a deployment with `seed`."""
    return random.Random(repr((seed, request.sampling.seed, request.prompt_ids)))


def is_greedy(sampling: Sampling) -> bool:
    """Whether the likeliest token is taken: at temperature 0, or where there is no other candidate."""
    return sampling.temperature == 0.0 or sampling.top_k == 1


def choose(likeliest: torch.Tensor, logits: torch.Tensor, drawn: Sequence[tuple[int, Sampling, float]]) -> torch.Tensor:
    """The next tokens, shape `(n,)`. `logits`, shape `(n, width)`, have their mask; `likeliest`, shape `(n,)`, is where
    they are largest. `drawn` names the rows that are drawn: index, sampling, and a uniform number in [0, 1)."""
    if not drawn:
        return likeliest
    tokens = likeliest.clone()
    for index, sampling, uniform in drawn:
        tokens[index] = draw(logits[index], sampling, uniform)
    return tokens


def draw(logits: torch.Tensor, sampling: Sampling, uniform: float) -> torch.Tensor:
    """One token (0-dim) of `logits`, shape `(width,)`: temperature, then `top_k`, then `top_p` of what that leaves. It
    is the first token, in order of id, whose cumulative probability exceeds `uniform`."""
    tempered = (logits - logits.max()) / sampling.temperature
    probabilities = _nucleus(_top(tempered, sampling.top_k).softmax(-1), sampling.top_p).double()
    reached = probabilities.cumsum(-1)
    token = torch.searchsorted(reached, reached[-1:] * uniform, right=True)[0]
    last = probabilities.nonzero()[-1, 0]  # rounding can push the bound onto the total itself
    return torch.minimum(token, last)


def _top(logits: torch.Tensor, top_k: int) -> torch.Tensor:
    """All but the `top_k` largest at minus infinity; those equal to the smallest of them stay."""
    if not 0 < top_k < logits.shape[-1]:
        return logits
    least = logits.topk(top_k).values[-1]
    return logits.masked_fill(logits < least, -torch.inf)


def _nucleus(probabilities: torch.Tensor, top_p: float) -> torch.Tensor:
    """All but the likeliest tokens that together reach `top_p` at zero; those equal to the least of them stay."""
    if top_p >= 1.0:
        return probabilities
    largest = probabilities.topk(min(_CANDIDATES, len(probabilities))).values
    if float(largest.sum()) < top_p:
        largest = probabilities.sort(descending=True).values
    reached = largest.double().cumsum(-1)
    inside = int((reached < top_p).sum())
    least = largest[min(inside, len(largest) - 1)]
    return probabilities.masked_fill(probabilities < least, 0.0)
