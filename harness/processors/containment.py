"""Where the code of users (and engines) runs: whatever it does is a value, one failed request.

This is the one place that catches everything, because containing unknown code is its point.
"""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from harness.errors import Unsupported
from harness.processors.messages import Failed

if TYPE_CHECKING:
    import torch

T = TypeVar("T")
FRAMES = 3
LONGEST = 2000
IMPOSSIBLE = -1e30
"""Processors forbid a token by -inf or by the lowest float32; a logit that is not above this is forbidden."""


class ProcessorFault(Exception):  # noqa: N818 - what a user's processor did against its protocol
    """A processor broke its protocol; the text says how."""


class TooSlow(Exception):  # noqa: N818 - a limit, not a fault of this program
    """A processor took longer than its time limit."""


def contained(key: int, action: Callable[[], T]) -> T | Failed:
    """What `action` returns, or how it failed."""
    try:
        return action()
    except BaseException as error:
        return failed(key, error)


def failed(key: int, error: BaseException) -> Failed:
    """`error` as the failure of one sequence."""
    match error:
        case Unsupported(reason=reason):
            return Failed(key, "unsupported", reason)
        case TooSlow():
            return Failed(key, "timeout", str(error))
        case ProcessorFault():
            return Failed(key, "processor", str(error))
        case _:
            return Failed(key, "processor", described(error))


def described(error: BaseException) -> str:
    """Type and text of an error and the last frames it came through, the innermost first."""
    text = "".join(traceback.format_exception_only(error)).strip()
    if isinstance(error, SystemExit):
        text = f"the code called exit: {text}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).parent != Path(__file__).parent]
    steps = [f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}" for frame in reversed(frames[-FRAMES:])]
    return "; ".join([text, *steps])[:LONGEST]


def checked(result: object, width: int) -> "torch.Tensor":
    """`result` if it can be the new logits of one row: a float32 tensor of shape `(width,)` without NaN or +inf that
    leaves some token possible. Raises `ProcessorFault`."""
    import torch

    if not isinstance(result, torch.Tensor):
        raise ProcessorFault(f"the processor gave {type(result).__name__}, not a tensor of new logits")
    if tuple(result.shape) != (width,):
        raise ProcessorFault(f"the processor gave logits of shape {tuple(result.shape)}; wanted ({width},)")
    if result.dtype != torch.float32:
        raise ProcessorFault(f"the processor gave logits of type {result.dtype}; wanted torch.float32")
    highest = float(result.detach().amax())
    if highest != highest:
        raise ProcessorFault("the processor gave logits with NaN")
    if highest == float("inf"):
        raise ProcessorFault("the processor gave logits with +inf")
    if highest <= IMPOSSIBLE:
        raise ProcessorFault("the processor left no token possible")
    return result.detach().cpu()
