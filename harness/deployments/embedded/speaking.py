"""From logits to said tokens, with what is known about each: one transfer from the device a step."""

import math
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch

from harness.deployments.embedded.row import Row, Said
from harness.deployments.embedded.sampling import choose, is_greedy
from harness.deployments.embedded.steering import Steered
from harness.processors.masker import Rewritten, Steering
from harness.request import Failure

Numbers = tuple[float, float, float, float, float, float]
"""Token, raw and masked log-probability, mass, wanted token and its log-probability."""


def speak(
    rows: Sequence[Row], raw: torch.Tensor, steered: Steered, answers: Mapping[int, Steering]
) -> list[Said | Failure]:
    """The next token of each row, or its failure. `raw`, shape `(n, width)`, float32, has no masks."""
    numbers = _numbers(rows, raw, steered, answers)
    now = time.perf_counter()
    return [_result(row, place, numbers[place], steered, answers, now) for place, row in enumerate(rows)]


def _numbers(
    rows: Sequence[Row], raw: torch.Tensor, steered: Steered, answers: Mapping[int, Steering]
) -> list[Numbers]:
    samplings = [(place, row.ticket.request.sampling) for place, row in enumerate(rows)]
    drawn = [(place, how, rows[place].draw.random()) for place, how in samplings if not is_greedy(how)]
    wanted = _likeliest(raw)
    likeliest = wanted if steered.logits is raw else _likeliest(steered.logits)
    tokens = choose(likeliest, steered.logits, [each for each in drawn if each[0] not in steered.wrong])
    free = _Peak.of(raw, wanted)
    kept = free if steered.logits is raw else _Peak.of(steered.logits, likeliest)
    columns = (
        tokens,
        free.logprob(raw, tokens),
        kept.logprob(steered.logits, tokens),
        _mass(raw, free, kept, steered, answers),
        wanted,
        free.log_probability,
    )
    return [tuple(line) for line in torch.stack([column.double() for column in columns], dim=1).tolist()]


def _likeliest(logits: torch.Tensor) -> torch.Tensor:
    """Where each row is largest, the first such place (or NaN). On the CPU NumPy finds it ten times faster."""
    if logits.device.type == "cpu":
        return torch.from_numpy(logits.numpy().argmax(axis=1))
    return logits.argmax(-1)


def _at(values: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return values.gather(1, tokens[:, None])[:, 0]


class _Peak(NamedTuple):
    """The largest logit of each row and its log-probability, from which all others follow without loss. `log_softmax`
    gives it, as it goes over memory once and takes minus infinity in its stride; `logsumexp` does neither."""

    logit: torch.Tensor
    log_probability: torch.Tensor

    @classmethod
    def of(cls, logits: torch.Tensor, likeliest: torch.Tensor) -> "_Peak":
        return cls(_at(logits, likeliest), _at(logits.log_softmax(-1), likeliest))

    def logprob(self, logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        return _at(logits, tokens) - self.logit + self.log_probability

    def log_sum(self) -> torch.Tensor:
        """The logarithm of the summed exponentials."""
        return self.logit - self.log_probability


def _mass(
    raw: torch.Tensor, free: _Peak, kept: _Peak, steered: Steered, answers: Mapping[int, Steering]
) -> torch.Tensor:
    """The unmasked probability of what is allowed. A mask only takes tokens out of the sum; a processor may change
    logits otherwise, so what it left possible is summed anew."""
    mass = (kept.log_sum() - free.log_sum()).exp()
    for place, answer in answers.items():
        if isinstance(answer, Rewritten) and place not in steered.wrong:
            possible = torch.isfinite(steered.logits[place])
            mass[place] = (raw[place].masked_fill(~possible, -torch.inf).logsumexp(-1) - free.log_sum()[place]).exp()
    return mass.clamp(max=1.0)


def _result(
    row: Row, place: int, numbers: Numbers, steered: Steered, answers: Mapping[int, Steering], now: float
) -> Said | Failure:
    answer = answers.get(place)
    if isinstance(answer, Failure):
        return answer
    if place in steered.wrong:
        return row.ticket.fail(*steered.wrong[place])
    token, raw_logprob, masked_logprob, mass, wanted, wanted_logprob = numbers
    if math.isnan(wanted_logprob) or math.isnan(masked_logprob):
        return row.ticket.fail("deployment", "the model's logits are not numbers (NaN or infinity)")
    allowed = steered.allowed[place]
    return Said(int(token), raw_logprob, masked_logprob, mass, allowed, int(wanted), wanted_logprob, now)
