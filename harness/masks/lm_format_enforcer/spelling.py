"""One of several given texts, letter by letter: labels, and the enumerated strings and keys of a JSON schema.

The library goes through all of the texts for each letter and makes a parser for each. Here the texts are sorted, so
that those which begin alike stand together, and the library is asked again where the text has been said.
"""

from bisect import bisect_left

from lmformatenforcer import CharacterLevelParser, JsonSchemaParser

from harness.masks.lm_format_enforcer.places import in_string, top

LAST = "\U0010ffff"


class Spelling(CharacterLevelParser):  # type: ignore[misc]
    """The texts `words[low:high]` begin with the same `size` letters, which have been said. After a whole one comes the
    quote that `string`, the library's parser at the start of these texts, waits for; without it the text may end."""

    def __init__(self, words: tuple[str, ...], string: JsonSchemaParser | None, low: int, high: int, size: int) -> None:
        self.words = words
        self.string = string
        self.low = low
        self.high = high
        self.size = size

    @property
    def whole(self) -> bool:
        """Whether one of the texts has been said; it is the first of those that begin so."""
        return len(self.words[self.low]) == self.size

    def get_allowed_characters(self) -> str:
        letters = ['"'] if self.whole and self.string else []
        at = self.low + self.whole
        while at < self.high:
            letters.append(self.words[at][self.size])
            at = self._past(self.words[at])
        return "".join(letters)

    def add_character(self, new_character: str) -> CharacterLevelParser:
        if new_character == '"' and self.string:
            return _said(self.string, self.words[self.low]).add_character('"')
        low = bisect_left(self.words, self.words[self.low][: self.size] + new_character, self.low, self.high)
        return Spelling(self.words, self.string, low, self._past(self.words[low]), self.size + 1)

    def can_end(self) -> bool:
        return self.whole and not self.string

    def _past(self, word: str) -> int:
        """The first text that does not begin as `word` does, the next letter included."""
        if word[self.size] == LAST:
            return self.high
        return bisect_left(self.words, word[: self.size] + chr(ord(word[self.size]) + 1), self.low, self.high)


def spelling(texts: list[str] | tuple[str, ...], string: JsonSchemaParser | None = None) -> Spelling:
    """One of `texts`, nothing of which has been said."""
    words = tuple(sorted(set(texts)))
    return Spelling(words, string, 0, len(words), 0)


def enumerated(parser: CharacterLevelParser) -> Spelling | None:
    """The same as `parser`, if it is at the start of an enumerated string; not where a text holds two blanks in a row
    or begins with one, of which the library makes something else."""
    string = top(parser)
    if not in_string(string) or not string.allowed_strings or string.regex_parser or string.parsed_string:
        return None
    if any("  " in text or text[:1].isspace() for text in string.allowed_strings):
        return None
    return spelling(string.allowed_strings, parser)


def _said(start: JsonSchemaParser, text: str) -> JsonSchemaParser:
    """The library's parser after `text`; the quote that comes next makes it forget how many blanks came before."""
    top = start.object_stack[-1]._clone()
    top.parsed_string = text
    said = JsonSchemaParser(start.context, start.config, [*start.object_stack[:-1], top])
    said.last_parsed_string = start.last_parsed_string
    return said
