"""What the benchmark asks a worker, and what it says back, as msgpack."""

import msgspec

from harness.constraint import Constraint


class Walk(msgspec.Struct, frozen=True, tag="walk"):
    """Compile, then walk each of these token sequences. Answered by `Compiled`, a `Walked` each, then `Done`."""

    constraint: Constraint
    sequences: tuple[tuple[int, ...], ...]


class Complete(msgspec.Struct, frozen=True, tag="complete"):
    """Say `ids`, then whatever the masks allow until the text may end; answered by `Ended`."""

    constraint: Constraint
    ids: tuple[int, ...]
    seeds: tuple[int, ...]


class Begins(msgspec.Struct, frozen=True, tag="begins"):
    """Whether the masks let one say `ids`; answered by `Answer`, None where the engine cannot express it."""

    constraint: Constraint
    ids: tuple[int, ...]


class Judge(msgspec.Struct, frozen=True, tag="judge"):
    """Ask the oracle whether the constraint allows each text; answered by `Verdicts`."""

    constraint: Constraint
    texts: tuple[str, ...]


Job = Walk | Complete | Begins | Judge


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The worker has its tables and has made a first mask: seconds on the clock that this took, and the library's
    version."""

    setup_s: float
    version: str


class Compiled(msgspec.Struct, frozen=True, tag="compiled"):
    """Processor seconds."""

    compile_s: float


class Walked(msgspec.Struct, frozen=True, tag="walked"):
    """Processor microseconds of each mask on the way, up to and with the first that forbids the next token; `masks`
    are the words of the first of them in a row. `refused` is the step of that token; None where the whole text was said
    and ended."""

    us: tuple[float, ...]
    refused: int | None
    masks: bytes


class Done(msgspec.Struct, frozen=True, tag="done"):
    """The walk is over; `peak_mib` is the most resident memory that the process ever had."""

    peak_mib: float


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """The engine cannot express the constraint (`unsupported`), or its library failed (`error`)."""

    unsupported: bool
    reason: str


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """Texts that the masks let end, and which of them the oracle accepts."""

    texts: tuple[str, ...]
    accepted: tuple[bool, ...]


class Answer(msgspec.Struct, frozen=True, tag="answer"):
    """Yes, no, or not known."""

    yes: bool | None


class Verdicts(msgspec.Struct, frozen=True, tag="verdicts"):
    """The oracle's word on each text."""

    accepted: tuple[bool, ...]


Said = Ready | Compiled | Walked | Done | Refused | Ended | Answer | Verdicts
