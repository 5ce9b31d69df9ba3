"""Text of models and data made fit to be shown: characters that cannot be seen become ones that can.

Escaping for HTML is not done here: the templates and `svg` escape whatever they are given.
"""

import json
import unicodedata
from typing import Any

SHOWN = {"\n": "\n", "\t": "\t"}
JOINERS = "\u200c\u200d"
"""Zero-width joiners: emoji and several scripts need them, and they turn no text around."""
IN_TOKEN = {"\n": "⏎", "\t": "⇥", " ": "·"}


def readable(text: str, limit: int) -> str:
    """`text` for a paragraph, cut after `limit` characters with a word about the rest."""
    if len(text) > limit:
        return f"{drawn(text[:limit])}… ({len(text) - limit:,} characters more)"
    return drawn(text)


def drawn(text: str) -> str:
    """`text` with its invisible characters drawn; line breaks and tabs stay."""
    return "".join(SHOWN.get(character, _seen(character)) for character in text)


def token(text: str, limit: int = 40) -> str:
    """`text` of one token, with its spaces and line breaks drawn."""
    shown = "".join(IN_TOKEN.get(character, _seen(character)) for character in text)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def value(found: Any, limit: int) -> str:
    """A JSON value: text as it is, anything else as compact JSON."""
    return readable(found if isinstance(found, str) else json.dumps(found, ensure_ascii=False), limit)


def _seen(character: str) -> str:
    """`character`, or its code point in angle brackets where it has no picture (controls, direction marks, line
    separators, lone surrogates)."""
    if character not in JOINERS and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return f"⟨U+{ord(character):04X}⟩"
    return character
