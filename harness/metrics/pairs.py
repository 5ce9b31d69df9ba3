"""Differences between two arms (or two runs) on the same examples, tested in pairs."""

from typing import Literal

import msgspec

Test = Literal["mcnemar", "bootstrap", "blocks"]
"""`mcnemar`: exact, on the examples where the two disagree. `bootstrap`: paired, over examples (or their clusters).
`blocks`: t test over the log ratios of paired blocks."""


class Pair(msgspec.Struct, frozen=True):
    """`arm` against `against` in one metric.

    `kind` says what `value`, `low`, `high` and `mdd` are: a `difference` (arm minus against; 0 is no difference) or a
    `ratio` (arm over against; 1 is no difference). `n` counts the paired observations: examples both arms answered, or
    blocks both ran whole. `p` is two-sided; `p_holm` is adjusted over the pairs of the same metric. `mdd` is the
    smallest true difference (or ratio above 1) that this n would have found at the 5% level in 80% of such runs.
    All but `n` are None where they cannot be had.
    """

    metric: str
    arm: str
    against: str
    kind: Literal["difference", "ratio"]
    test: Test
    value: float | None
    low: float | None
    high: float | None
    n: int
    p: float | None
    p_holm: float | None
    mdd: float | None
