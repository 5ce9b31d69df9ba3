"""The times within which an answer counts for goodput."""

from typing import Annotated

import msgspec

Limit = Annotated[float, msgspec.Meta(gt=0)] | None


class Targets(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The longest times, in milliseconds as servers' own benchmarks take them; None is no limit.

    They only sort answers that are there already, so a run may be reported again under others.
    """

    ttft_ms: Limit = None
    tpot_ms: Limit = None
    e2e_ms: Limit = None

    @property
    def limits_s(self) -> dict[str, float]:
        """The limits that are set, in seconds, by the record's name of the time."""
        limits = {"ttft_s": self.ttft_ms, "tpot_s": self.tpot_ms, "e2e_s": self.e2e_ms}
        return {name: limit / 1e3 for name, limit in limits.items() if limit is not None}


NO_TARGETS = Targets()
