"""A method at work in a decoding loop: the one door through which the loop gets masks or new logits.

The loop calls, for each request: `open` when it arrives, `ready` until its constraint is compiled, `token` after each
token is sampled (async methods start on the next mask there), `collect` once the logits are there, `close` at the end.
Everything is called from the loop's own thread.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from harness.mask import Mask
from harness.request import Failure, Request

if TYPE_CHECKING:
    import torch


class Masked(msgspec.Struct, frozen=True):
    """What one row gets: the tokens allowed next. `mask_s` is the time that making it took, wherever it ran."""

    mask: Mask
    mask_s: float


class Rewritten(msgspec.Struct, frozen=True):
    """What one row gets from a processor of the user's own: new logits, float32, shape `(width,)`."""

    logits: "torch.Tensor"
    mask_s: float


Steering = Masked | Rewritten | Failure


class Masker(Protocol):
    """One arm's way of constraining many sequences at once."""

    def open(self, request: Request) -> None:
        """Start on a request (compile its constraint); returns at once."""

    def ready(self, request_id: str) -> bool | Failure:
        """Whether the constraint is compiled, so that the request may join the batch; a failure ends it. Never
        blocks."""

    def compile_s(self, request_id: str) -> float:
        """Seconds that the first use of its constraint took; 0.0 where it was already compiled."""

    def start(self, request_ids: Sequence[str]) -> None:
        """The last tokens of these rows are known and the forward pass is about to run: masks that are made ahead
        start now. Methods that make masks later do nothing."""

    def collect(self, request_ids: Sequence[str], logits: "torch.Tensor") -> Mapping[str, Steering]:
        """What each row gets now; `logits` has shape `(len(request_ids), width)`, float32, and is not changed. Blocks
        until each row has its answer or its time limit has passed (then that row's answer is a `Failure`)."""

    def token(self, request_id: str, token: int) -> None:
        """`token` was said."""

    def close(self, request_id: str) -> None:
        """The request ended, was cancelled or failed: free all that it held. Closing twice is allowed."""

    def stop(self) -> None:
        """Free everything (workers, shared memory, threads)."""
