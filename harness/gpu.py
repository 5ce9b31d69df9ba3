"""Name, memory and power use of this machine's GPUs while a run goes on; nothing where there is none.

The one file that uses nvidia-ml-py (`pynvml`), which is optional.
"""

import importlib
import statistics
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

EVERY_S = 1.0


class Use(msgspec.Struct, frozen=True):
    """One GPU at one moment."""

    memory_gib: float
    power_w: float


class Sampler:
    """Looks at all GPUs every second, on a thread that sleeps in between."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._handles = [library.nvmlDeviceGetHandleByIndex(i) for i in range(library.nvmlDeviceGetCount())]
        self._seen: list[list[Use]] = [[] for _ in self._handles]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="gpu-sampler", daemon=True)
        self._thread.start()

    def stop(self) -> list[dict[str, Any]]:
        """What was seen of each GPU: its name, and its memory and power, mean and highest."""
        self._over.set()
        self._thread.join()
        return [
            {"name": _text(self._library.nvmlDeviceGetName(handle)), **summary(seen)}
            for handle, seen in zip(self._handles, self._seen, strict=True)
        ]

    def _watch(self) -> None:
        while not self._over.is_set():
            for handle, seen in zip(self._handles, self._seen, strict=True):
                seen.append(self._use(handle))
            self._over.wait(EVERY_S)

    def _use(self, handle: Any) -> Use:
        memory = self._library.nvmlDeviceGetMemoryInfo(handle).used / 2**30
        return Use(memory, self._library.nvmlDeviceGetPowerUsage(handle) / 1000.0)


def summary(seen: Sequence[Use]) -> dict[str, float]:
    """Memory (GiB) and power (W), mean and highest, and how often both were seen."""
    if not seen:
        return {"samples": 0}
    memory, power = [use.memory_gib for use in seen], [use.power_w for use in seen]
    return {
        "memory_gib_mean": round(statistics.fmean(memory), 2),
        "memory_gib_highest": round(max(memory), 2),
        "power_w_mean": round(statistics.fmean(power), 1),
        "power_w_highest": round(max(power), 1),
        "samples": len(seen),
    }


@contextmanager
def sampled(into: list[dict[str, Any]]) -> Iterator[None]:
    """Adds to `into`, at the end of the block, what was seen of each GPU."""
    library = _library()
    if library is None:
        yield
        return
    sampler = Sampler(library)
    try:
        yield
    finally:
        into += sampler.stop()
        library.nvmlShutdown()


def _library() -> Any | None:
    """The library, ready to be asked; None where it is not installed or this machine has no NVIDIA GPU."""
    try:
        library = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        library.nvmlInit()
    except library.NVMLError:
        return None
    return library


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)
