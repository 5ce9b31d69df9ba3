"""Prompts as token ids, made in one place, so that every arm and every deployment sees the same ones.

The chat template is rendered, then encoded once. The begin token stands exactly once where the model has one; special
tokens in the user's own data stay text; a system turn that the template refuses or drops moves to the front of the
first user turn.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import jinja2
import msgspec

from harness.errors import ConfigError, DataError


class Prompt(msgspec.Struct, frozen=True):
    """A prompt as the model sees it: its ids, its text, and the rules that were applied to it."""

    ids: tuple[int, ...]
    text: str
    notes: tuple[str, ...] = ()


class Template:
    """A jinja2 template over the columns of an example; a name that the example lacks is an error."""

    def __init__(self, source: str, where: str) -> None:
        self._where = where
        environment = jinja2.Environment(
            undefined=jinja2.StrictUndefined, keep_trailing_newline=False, autoescape=False
        )
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateSyntaxError as error:
            found = f"{where}: line {error.lineno}: {error.message}"
            raise ConfigError(found, "a jinja2 template", "mend it") from None

    def render(self, columns: Mapping[str, Any]) -> str:
        try:
            return self._template.render(columns)
        except jinja2.UndefinedError as error:
            found = f"{self._where}: {error.message}"
            raise DataError(found, f"one of the columns {sorted(columns)}", "mend the template or the data") from None


class Prompter:
    """Turns messages into prompts with one tokenizer: a transformers fast tokenizer, with or without a chat
    template."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    @classmethod
    def load(cls, name: str) -> "Prompter":
        """The tokenizer in a local folder, or of a hub name. Raises `ConfigError` where there is none."""
        from transformers import AutoTokenizer

        try:
            return cls(AutoTokenizer.from_pretrained(name))
        except (OSError, ValueError) as error:
            found = f"tokenizer: {name!r}: {str(error).splitlines()[0]}"
            raise ConfigError(found, "a folder or hub name with a tokenizer", "mend the name") from error

    @property
    def tokenizer(self) -> Any:
        return self._tokenizer

    def prompt(self, user: str, system: str | None = None) -> Prompt:
        """The prompt for one user turn, ready for the assistant's answer."""
        if self._tokenizer.chat_template is None:
            whole = user if system is None else f"{system}\n\n{user}"
            return self._finish(whole, (whole,), ("no chat template: the text itself is the prompt",))
        notes: tuple[str, ...] = ()
        if system is not None and not self._takes_system:
            user, system = f"{system}\n\n{user}", None
            notes = ("the chat template has no system turn: its text stands at the front of the user turn",)
        turns = [{"role": "user", "content": user}]
        if system is not None:
            turns.insert(0, {"role": "system", "content": system})
        return self._finish(self._render(turns), tuple(turn["content"] for turn in turns), notes)

    def encode(self, text: str) -> tuple[int, ...]:
        """The ids of `text` alone: no begin token; special tokens in it stay text."""
        return tuple(self._tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"])

    def _finish(self, text: str, contents: Sequence[str], notes: tuple[str, ...]) -> Prompt:
        ids = self._with_begin(self._encode_rendered(text, contents))
        return Prompt(ids, text, notes)

    def _render(self, turns: Sequence[Mapping[str, str]]) -> str:
        rendered = self._tokenizer.apply_chat_template(list(turns), tokenize=False, add_generation_prompt=True)
        return str(rendered)

    @cached_property
    def _takes_system(self) -> bool:
        """Whether a system turn comes out exactly once, seen by rendering one."""
        mark = "Answer with one label."
        turns = [{"role": "system", "content": mark}, {"role": "user", "content": "Is water wet?"}]
        try:
            return self._render(turns).count(mark) == 1
        except jinja2.TemplateError:
            return False

    @cached_property
    def _special(self) -> tuple[str, ...]:
        return tuple(sorted(self._tokenizer.get_added_vocab(), key=len, reverse=True))

    def _encode_rendered(self, text: str, contents: Sequence[str]) -> tuple[int, ...]:
        if not any(special in content for content in contents for special in self._special):
            return tuple(self._tokenizer(text, add_special_tokens=False)["input_ids"])
        ids: list[int] = []
        for piece, from_data in _split(text, contents):
            if from_data:
                ids += self.encode(piece)
            else:
                ids += self._tokenizer(piece, add_special_tokens=False)["input_ids"]
        return tuple(ids)

    def _with_begin(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        begin = self._tokenizer.bos_token_id
        adds_begin = begin is not None and list(self._tokenizer("")["input_ids"][:1]) == [begin]
        if begin is None or not (adds_begin or ids[:1] == (begin,)):
            return ids
        bare = ids
        while bare[:1] == (begin,):
            bare = bare[1:]
        return (begin, *bare)


def _split(text: str, contents: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """The pieces of a rendered prompt in order, each with whether it came from the data."""
    at = 0
    for content in contents:
        bare = content if content in text[at:] else content.strip()
        start = text.find(bare, at)
        if start < 0:
            raise DataError(
                f"prompt: the chat template rewrites {content[:60]!r}, which holds a special token of the model",
                "a template that passes such text through",
                "remove the special token from the data",
            )
        if text[at:start]:
            yield text[at:start], False
        yield bare, True
        at = start + len(bare)
    if text[at:]:
        yield text[at:], False
