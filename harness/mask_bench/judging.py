"""Who is right about a disputed token, as far as that can be shown.

Shown viable: the token is the next of a text that the oracle accepts, or the reference allows it (what it allows is
valid), or an engine that allows it went on to a text that the oracle accepts. Shown dead: the reference, which is exact
for everything but JSON Schema, forbids it; for a schema, no JSON text at all begins so.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.constraint import Constraint, JsonSchema, json_schema
from harness.mask_bench.agreement import Drawn, Masks
from harness.mask_bench.guard import Broken, Guarded
from harness.mask_bench.instances import Instance
from harness.mask_bench.messages import Answer, Begins, Complete, Ended, Judge, Verdicts
from harness.mask_bench.rows import Disputed, Finding
from harness.vocabulary import Vocabulary

REFERENCE = "reference"
SEEDS = (0, 1, 2)
SHOWN = 120
"""Characters of a text that an example shows."""
SPACE, QUOTE, BACKSLASH = b" \t\n\r", 0x22, 0x5C


@dataclass(frozen=True)
class Case:
    """What is at hand to judge with: the reference's masks on each text (none where it cannot express the constraint),
    the oracle's word on the texts (None where it came to no end)."""

    instance: Instance
    ids: Sequence[tuple[int, ...]]
    reference: Sequence[Masks]
    oracle: tuple[bool, ...] | None
    known: Vocabulary


def judged(drawn: Drawn, case: Case, allower: Guarded, reference: Guarded) -> Disputed:
    """The finding on one disputed token."""
    before = case.ids[drawn.case][: drawn.step]
    finding, evidence = _finding(drawn, case, allower, reference)
    shown = case.known.text(before)[-SHOWN:]
    token = case.known.bytes_of((drawn.token,)).decode(errors="backslashreplace") or "(stop)"
    place = (drawn.allower, drawn.forbidder, drawn.case, drawn.step)
    return Disputed(*place, shown, token, drawn.of, finding, evidence)


def oracle(instance: Instance, reference: Guarded) -> tuple[bool, ...] | None:
    """The oracle's word on each text, given in the reference's process, since a pattern can take for ever."""
    try:
        said = list(reference.ask(Judge(instance.constraint, tuple(case.text for case in instance.cases))))
    except Broken:
        return None
    return said[-1].accepted if isinstance(said[-1], Verdicts) else None


def unspaced(before: bytes, token: bytes) -> bytes | None:
    """`before + token` without the white space between JSON tokens; None where `token` adds none of it. How much of it
    is allowed, and where, is a setting and not a matter of validity."""
    kept, quoted, escaped, added = bytearray(), False, False, False
    for place, byte in enumerate(before + token):
        if not quoted and byte in SPACE:
            added |= place >= len(before)
            continue
        kept.append(byte)
        quoted ^= byte == QUOTE and not escaped
        escaped = quoted and byte == BACKSLASH and not escaped
    return bytes(kept) if added else None


def _finding(drawn: Drawn, case: Case, allower: Guarded, reference: Guarded) -> tuple[Finding, str]:
    ids = case.ids[drawn.case]
    said = (*ids[: drawn.step], drawn.token)
    if drawn.token in case.known.stop_ids:
        return _end(case, drawn, reference)
    if isinstance(case.instance.constraint, JsonSchema):
        return _of_json(drawn, case, said, allower, reference)
    match _by_reference(drawn, case):
        case True:
            return "viable", "the reference allows it"
        case False:
            return "dead", "the reference, which is exact here, forbids it"
        case None:
            return _by_ends(case.instance.constraint, said, allower)


def _of_json(
    drawn: Drawn, case: Case, said: tuple[int, ...], allower: Guarded, reference: Guarded
) -> tuple[Finding, str]:
    ids = case.ids[drawn.case]
    bare = unspaced(case.known.bytes_of(said[:-1]), case.known.bytes_of(said[-1:]))
    spelled = _spelled(case.known, bare) if bare is not None else said
    if spelled is not None and _answer(reference, json_schema({}), spelled) is False:
        return "dead", "no JSON text begins so"
    if bare is not None:
        return "spacing", "it adds white space between JSON tokens"
    if ids[drawn.step] == drawn.token and case.oracle is not None and case.oracle[drawn.case]:
        return "viable", "it is the next token of a text that the oracle accepts"
    if _by_reference(drawn, case):
        return "viable", "the reference allows it, and what it allows is valid"
    return _by_ends(case.instance.constraint, said, allower)


def _spelled(known: Vocabulary, text: bytes) -> tuple[int, ...] | None:
    """`text` byte by byte; None where some byte has no token of its own."""
    singles = {token: i for i, token in enumerate(known.tokens) if token and len(token) == 1}
    found = [singles.get(bytes([byte])) for byte in text]
    return None if None in found else tuple(i for i in found if i is not None)


def _end(case: Case, drawn: Drawn, reference: Guarded) -> tuple[Finding, str]:
    text = case.known.text(case.ids[drawn.case][: drawn.step])
    try:
        answer = list(reference.ask(Judge(case.instance.constraint, (text,))))[-1]
    except Broken:
        return "undecided", "the oracle came to no end"
    if not isinstance(answer, Verdicts):
        return "undecided", "the oracle failed"
    return ("viable", "the oracle accepts the text as it is") if answer.accepted[0] else (
        "dead", "the oracle rejects the text as it is"
    )  # fmt: skip


def _by_reference(drawn: Drawn, case: Case) -> bool | None:
    if drawn.case >= len(case.reference) or drawn.step >= len(case.reference[drawn.case]):
        return None
    word = int(case.reference[drawn.case][drawn.step][drawn.token >> 5])
    return bool((word >> (drawn.token & 31)) & 1)


def _answer(worker: Guarded, constraint: Constraint, ids: tuple[int, ...]) -> bool | None:
    try:
        said = list(worker.ask(Begins(constraint, ids)))[-1]
    except Broken:
        return None
    return said.yes if isinstance(said, Answer) else None


def _by_ends(constraint: Constraint, said: tuple[int, ...], allower: Guarded) -> tuple[Finding, str]:
    try:
        ended = list(allower.ask(Complete(constraint, said, SEEDS)))[-1]
    except Broken as broken:
        return "undecided", f"going on from it: {broken.death}"
    if not isinstance(ended, Ended) or not ended.texts:
        return "undecided", "no end was found from it"
    for text, accepted in zip(ended.texts, ended.accepted, strict=True):
        if accepted:
            return "viable", f"the oracle accepts {text[-SHOWN:]!r}"
    return "ends_invalid", f"{allower.name} let this end, which the oracle rejects: {ended.texts[0][-SHOWN:]!r}"
