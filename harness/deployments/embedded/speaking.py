"""From logits to said tokens, with what is known about each: one transfer from the device a step."""

import math
import time
from collections.abc import Mapping, Sequence

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
    raw_all = raw.log_softmax(-1)
    wanted = raw.max(-1).indices
    if steered.logits is raw:
        masked_all, likeliest = raw_all, wanted
    else:
        masked_all, likeliest = steered.logits.log_softmax(-1), steered.logits.max(-1).indices
    broken = set(steered.wrong)
    tokens = choose(likeliest, steered.logits, [each for each in drawn if each[0] not in broken])
    raw_said, masked_said = _at(raw_all, tokens), _at(masked_all, tokens)
    mass = _mass(raw_said, masked_said, raw_all, steered, answers)
    columns = (tokens, raw_said, masked_said, mass, wanted, _at(raw_all, wanted))
    return [tuple(line) for line in torch.stack([column.double() for column in columns], dim=1).tolist()]


def _at(values: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return values.gather(1, tokens[:, None])[:, 0]


def _mass(
    raw_said: torch.Tensor,
    masked_said: torch.Tensor,
    raw_all: torch.Tensor,
    steered: Steered,
    answers: Mapping[int, Steering],
) -> torch.Tensor:
    """The unmasked probability of what is allowed. A mask divides every allowed token's probability by it, so the token
    that was said tells it; a processor may change logits otherwise, so its row is summed."""
    mass = (raw_said - masked_said).exp()
    for place, answer in answers.items():
        if isinstance(answer, Rewritten) and place not in steered.wrong:
            possible = torch.isfinite(steered.logits[place])
            mass[place] = raw_all[place].masked_fill(~possible, -torch.inf).logsumexp(-1).exp()
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
