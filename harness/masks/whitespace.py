"""How much white space `JsonSchema.whitespace = "flexible"` lets engines put between JSON tokens: none to `MOST`
characters, so that no model is trapped in blanks up to its limit. `compact` means none."""

MOST = 12
"""Enough for a line break and an indent of eleven; also what lm-format-enforcer allows by default."""

CHARACTERS = " \t\n\r"
PATTERN = r"[ \t\n\r]{0,12}"
