"""What is reported of each token, worked out on the device of the logits and read from there only when it is sent."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from harness.deployments.embedded.steering import Steered
from harness.deployments.inside.telemetry import Told
from harness.processors.masker import Rewritten, Steering
from harness.request import Failure

if TYPE_CHECKING:
    import torch

DIGITS = 6
"""Digits after the point of what is sent: nats to a millionth, and microseconds."""


class Later:
    """A row whose numbers may still be under way from a GPU. Pickling it, which the server does once the step is done,
    makes it a plain list: so reporting never makes the scheduler wait for the forward pass."""

    def __init__(self, row: Callable[[], list[Any]]) -> None:
        self._row = row

    def __reduce__(self) -> tuple[type[list[Any]], tuple[list[Any]]]:
        return list, (self._row(),)


def rows_of(
    raw: "torch.Tensor",
    steered: Steered,
    answers: Mapping[int, Steering],
    wait_s: Callable[[], float],
    apply_s: float,
) -> Callable[[int, float, int], Any]:
    """Makes the row of a place, given its `compile_s` and the number of open sequences. `raw`, shape `(n, width)`, has
    no masks; `wait_s` is each row's share."""
    numbers = _numbers(raw, steered, answers)
    waited = cache(wait_s)

    def row(place: int, compile_s: float, open_sequences: int) -> list[Any]:
        answer = answers[place]
        assert not isinstance(answer, Failure)
        log_mass, wanted, wanted_logprob = numbers()[place]
        allowed = steered.allowed[place]
        assert allowed is not None
        return _plain(
            Told(
                log_mass=round(log_mass, DIGITS),
                allowed=allowed,
                wanted=int(wanted),
                wanted_logprob=round(wanted_logprob, DIGITS),
                mask_s=round(answer.mask_s, DIGITS),
                wait_s=round(waited(), DIGITS),
                apply_s=round(apply_s, DIGITS),
                compile_s=round(compile_s, DIGITS),
                rows=len(answers),
                lag=0,
                rewritten=1 if isinstance(answer, Rewritten) else 0,
                open=open_sequences,
            )
        )

    if raw.device.type == "cpu":
        return row
    return lambda place, compile_s, open_sequences: Later(lambda: row(place, compile_s, open_sequences))


def _plain(told: Told) -> list[Any]:
    return [getattr(told, name) for name in Told.__struct_fields__]


def _numbers(raw: "torch.Tensor", steered: Steered, answers: Mapping[int, Steering]) -> Callable[[], list[list[float]]]:
    """Log-mass, wanted token and its log-probability, for each row."""
    import torch

    total = raw.logsumexp(-1)
    kept = steered.logits.logsumexp(-1)
    for place, answer in answers.items():
        if isinstance(answer, Rewritten):  # new logits may differ by more than what they forbid
            possible = torch.isfinite(steered.logits[place])
            kept[place] = raw[place].masked_fill(~possible, -torch.inf).logsumexp(-1)
    best = raw.max(-1)
    columns = torch.stack([(kept - total).double(), best.indices.double(), (best.values - total).double()], dim=1)
    if raw.device.type == "cpu":
        values: list[list[float]] = columns.tolist()
        return lambda: values
    host = torch.empty(columns.shape, dtype=columns.dtype, pin_memory=True)
    host.copy_(columns, non_blocking=True)
    done: torch.cuda.Event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    done.record()

    @cache
    def read() -> list[list[float]]:
        done.synchronize()
        found: list[list[float]] = host.tolist()
        return found

    return read
