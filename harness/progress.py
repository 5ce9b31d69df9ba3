"""What a person sees while a run goes on: how far, how fast, what failed. One line, on standard error."""

import sys
import time
from typing import TextIO

from harness.record import Record


class Progress:
    """Counts records; writes a line that replaces itself on a terminal, and a new line every ten seconds elsewhere."""

    def __init__(self, total: int, out: TextIO = sys.stderr) -> None:
        self._total, self._out = total, out
        self._done = self._failed = self._tokens = 0
        self._start = time.perf_counter()
        self._shown = self._start
        self._live = out.isatty()

    def add(self, record: Record) -> None:
        self._done += 1
        self._failed += record.outcome == "failed"
        self._tokens += record.tokens
        now = time.perf_counter()
        if now - self._shown >= (0.2 if self._live else 10.0):
            self._shown = now
            self._show(record.arm)

    def close(self) -> None:
        if self._live and self._done:
            self._show("done")
            print(file=self._out)

    def _show(self, arm: str) -> None:
        elapsed_s = time.perf_counter() - self._start
        left_s = elapsed_s / self._done * (self._total - self._done)
        line = (
            f"{self._done}/{self._total}  {arm}  {self._done / elapsed_s:.1f} answers/s  "
            f"{self._tokens / elapsed_s:.0f} tokens/s  {self._failed} failed  about {left_s:.0f} s left"
        )
        print(f"\r\x1b[K{line}" if self._live else line, end="" if self._live else "\n", file=self._out, flush=True)
