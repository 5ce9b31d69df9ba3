"""A parser of one's own for lm-format-enforcer, as users write them: one SELECT statement over one table.

    python -m harness run task=sql method=async method.async.engine=harness.masks.sql_select:ENGINE
    python -m harness run task=sql method=processor method.processor.call=harness.processors.sql_select:factory

The statement is a chain of pieces, and `AFTER` says which pieces may follow. A piece is a parser of the library's, for
a fixed text or a regex; the parser of the whole is in the middle of every piece that the text so far may have got to.
It says what `tasks/sql/grammar.ebnf` derives.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from lmformatenforcer import CharacterLevelParser, CharacterLevelParserConfig, RegexParser, StringParser

from harness.constraint import Constraint, Grammar
from harness.masks.lm_format_enforcer import parser_engine

REGEXES = {
    "name": r"[a-z_][a-z0-9_]{0,29}",
    "number": r"-?(0|[1-9][0-9]{0,8})(\.[0-9]{1,4})?",
    "string": r"'[^'\n\r]{1,40}'",
    "count": r"[1-9][0-9]{0,3}",
}
MORE_COLUMNS = 4
MORE_CONDITIONS = 3
MORE = (", ", " AND ", " OR ")
"""Texts after which one more column or condition comes."""

Choices = list[tuple[str, str]]
"""Pieces (a regex by its name, or a text), each with the stage after it."""

COLUMN: Choices = [("name", "after column"), ("COUNT(*)", "after column")]
COLUMN += [(f"{function}(", "argument") for function in ("SUM", "AVG", "MIN", "MAX")]
LIMIT: Choices = [(" LIMIT ", "limit"), (";", "end")]
ORDER: Choices = [(" ORDER BY ", "order"), *LIMIT]
GROUP: Choices = [(" GROUP BY ", "group"), *ORDER]
AFTER: dict[str, Choices] = {
    "start": [("SELECT ", "columns")],
    "columns": [("*", "all columns"), *COLUMN],
    "all columns": [(" FROM ", "table")],
    "column": COLUMN,
    "argument": [("name", "close")],
    "close": [(")", "after column")],
    "after column": [(", ", "column"), (" FROM ", "table")],
    "table": [("name", "after table")],
    "after table": [(" WHERE ", "condition"), *GROUP],
    "condition": [("name", "operator")],
    "operator": [(f" {operator} ", "value") for operator in ("=", "!=", "<", ">", "<=", ">=")],
    "value": [("number", "after condition"), ("string", "after condition")],
    "after condition": [(" AND ", "condition"), (" OR ", "condition"), *GROUP],
    "group": [("name", "after group")],
    "after group": ORDER,
    "order": [("name", "after order")],
    "after order": [(" ASC", "after direction"), (" DESC", "after direction"), *LIMIT],
    "after direction": LIMIT,
    "limit": [("count", "after limit")],
    "after limit": [(";", "end")],
    "end": [],
}


class Path(NamedTuple):
    """The middle of one piece: what is left of it, the stage after it, how many more columns or conditions there may
    be."""

    piece: str
    rest: CharacterLevelParser
    stage: str
    more: int

    def key(self) -> Hashable:
        """Equal for equal paths."""
        said = self.rest.current_state if self.piece in REGEXES else self.rest.target_str
        return self.piece, said, self.stage, self.more


class SqlSelect(CharacterLevelParser):  # type: ignore[misc]  # the library is not typed
    """A SELECT statement of which `paths` may come next; `ended` after its semicolon."""

    def __init__(
        self, regexes: Mapping[str, CharacterLevelParser] | None = None, paths: Sequence[Path] = (), ended: bool = False
    ) -> None:
        super().__init__()
        self._regexes = regexes or {}
        self._paths = paths
        self._ended = ended
        if regexes is None:
            self.config = CharacterLevelParserConfig()

    @CharacterLevelParser.config.setter  # type: ignore[untyped-decorator]
    def config(self, new: CharacterLevelParserConfig) -> None:
        """Start with this configuration: its alphabet are the characters that a string may hold."""
        CharacterLevelParser.config.fset(self, new)
        self._regexes = {name: RegexParser(pattern, new) for name, pattern in REGEXES.items()}
        self._paths = list(self._after("start", MORE_COLUMNS))

    def get_allowed_characters(self) -> str:
        return "".join(path.rest.get_allowed_characters() for path in self._paths)

    def add_character(self, new_character: str) -> "SqlSelect":
        taking = [path for path in self._paths if new_character in path.rest.get_allowed_characters()]
        moved = [path._replace(rest=path.rest.add_character(new_character)) for path in taking]
        done = [path for path in moved if path.rest.can_end()]
        further = [next_path for path in done for next_path in self._after(path.stage, path.more)]
        ended = any(path.stage == "end" for path in done)
        return SqlSelect(
            self._regexes, [*(path for path in moved if path.rest.get_allowed_characters()), *further], ended
        )

    def can_end(self) -> bool:
        return self._ended

    def cache_key(self) -> Hashable:
        return self._ended, *(path.key() for path in self._paths)

    def _after(self, stage: str, more: int) -> Iterator[Path]:
        for piece, then in AFTER[stage]:
            left = MORE_CONDITIONS if piece == " WHERE " else more - (piece in MORE)
            if left >= 0:
                yield Path(piece, self._regexes.get(piece) or StringParser(piece), then, left)


def sql_select(constraint: Constraint) -> CharacterLevelParser | None:
    """The parser, where a task asks for a grammar; the library has its own for everything else."""
    return SqlSelect() if isinstance(constraint, Grammar) else None


ENGINE = parser_engine("sql_select", sql_select)
