"""How long a forward pass took, on a device that computes at once and on one that is handed its work."""

import time
from typing import Any, Protocol

import torch


class Clock(Protocol):
    """Marks instants in the device's own time. `seconds` between two marks waits until the second has passed."""

    def mark(self) -> Any: ...

    def seconds(self, first: Any, last: Any) -> float: ...


class HostClock:
    """The CPU: a call returns when its work is done."""

    def mark(self) -> float:
        return time.perf_counter()

    def seconds(self, first: float, last: float) -> float:
        return last - first


class CudaClock:
    """CUDA: a call only hands the work over, so the device itself notes the instants."""

    def mark(self) -> torch.cuda.Event:
        event: torch.cuda.Event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    def seconds(self, first: torch.cuda.Event, last: torch.cuda.Event) -> float:
        last.synchronize()
        return float(first.elapsed_time(last)) / 1000.0


def clock(device: torch.device) -> Clock:
    """The clock of `device`."""
    return CudaClock() if device.type == "cuda" else HostClock()
