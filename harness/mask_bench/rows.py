"""What one schema came to: a line of the benchmark's `records.jsonl`."""

from typing import Literal

import msgspec

Outcome = Literal["ok", "unsupported", "error", "timeout", "memory", "crash"]
"""`ok`: compiled, and every text walked. `unsupported`: the engine says that it cannot express the schema. `error`: its
library raised something else. The rest: its process was ended for time or memory, or ended by itself."""

Finding = Literal["viable", "spacing", "dead", "ends_invalid", "undecided"]
"""Of a token that one engine allows and another forbids. `viable`: some text that begins so is valid, so forbidding it
is too strict. `spacing`: so too, but only white space is at issue, whose amount is a setting. `dead`: no valid text
begins so, so allowing it is wrong. `ends_invalid`: the engine that allows it went on to let an invalid text end.
`undecided`: none of these could be shown."""


class CaseRow(msgspec.Struct, frozen=True):
    """One engine on one text: microseconds of each mask, and the step at which the next token was refused (None: the
    whole text was said and ended)."""

    us: tuple[float, ...]
    refused: int | None


class EngineRow(msgspec.Struct, frozen=True):
    """One engine on one schema. `compile_s` is None where it did not come to an end; `cases` are those walked."""

    outcome: Outcome
    reason: str
    compile_s: float | None
    cases: tuple[CaseRow, ...]
    peak_mib: float | None = None


class PairRow(msgspec.Struct, frozen=True):
    """Two engines on the steps that both reached: how many, on how many their masks differ, on how many `first`
    allows tokens that `second` forbids, and the other way, how many tokens these are, and how many tokens both allow,
    summed over steps."""

    first: str
    second: str
    steps: int
    differing: int
    first_only_steps: int
    second_only_steps: int
    first_only: int
    second_only: int
    both: int


class Disputed(msgspec.Struct, frozen=True):
    """A disputed token that was looked into: after `before`, `allower` allows `token` and `forbidder` forbids it.
    `of` is how many tokens were disputed so in this schema; `evidence` says what the finding rests on."""

    allower: str
    forbidder: str
    case: int
    step: int
    before: str
    token: str
    of: int
    finding: Finding
    evidence: str


class Row(msgspec.Struct, frozen=True):
    """One schema. `valid` is what the data says of each text, `oracle` what our oracle says (None: it came to no end);
    `tokens` their lengths with the stop token. `order` is the order in which the engines were asked."""

    id: str
    session: int
    order: tuple[str, ...]
    valid: tuple[bool, ...]
    oracle: tuple[bool, ...] | None
    tokens: tuple[int, ...]
    engines: dict[str, EngineRow]
    pairs: tuple[PairRow, ...]
    disputed: tuple[Disputed, ...]
