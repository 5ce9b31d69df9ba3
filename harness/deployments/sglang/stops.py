"""Stop strings, looked for on this side too: servers look for them in decoded text and can miss one that is spelled in
unusual tokens."""

from collections.abc import Sequence


def cut_at_stop(text: str, stops: Sequence[str]) -> str | None:
    """`text` up to the earliest stop string in it; None where there is none."""
    hits = [hit for stop in stops if (hit := text.find(stop)) >= 0]
    return text[: min(hits)] if hits else None
