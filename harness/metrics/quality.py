"""How good the answers are: accuracy, score, validity, coverage, compliance, and what became of each request."""

import msgspec


class Counts(msgspec.Struct, frozen=True):
    """What became of an arm's requests; the six outcomes sum to `n`.

    `unlabelled`: answered examples without a gold answer (left out of accuracy). `retried`: needed more than one
    attempt. `flags`: how many records carry each flag.
    """

    n: int
    valid: int
    invalid: int
    truncated: int
    stopped_early: int
    failed: int
    unsupported: int
    unlabelled: int
    retried: int
    trivial: int
    flags: dict[str, int]
