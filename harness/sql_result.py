"""Whether two SELECT statements mean the same, seen by running both.

They run on small SQLite databases whose rows are drawn, with fixed seeds, from the values that stand in the right
statement, their neighbours and a few others, so that every condition has rows on both sides. Equal results on all of
them count as the same meaning; the order of rows counts where the right statement sorts.
"""

import random
import re
import sqlite3
from collections import Counter
from collections.abc import Sequence

DATABASES = 3
ROWS = 60
STEPS = 2_000_000
"""How many SQLite instructions one statement may take."""

TABLE = re.compile(r"CREATE TABLE\s+(\w+)\s*\((.*)\)\s*;?\s*$", re.IGNORECASE | re.DOTALL)
LITERAL = re.compile(r"'((?:[^']|'')*)'|(?<![\w.])(-?\d+(?:\.\d+)?)")
WORDS = ("alpha", "beta", "gamma", "delta")
Rows = list[tuple[object, ...]]


def same_meaning(said: str, wanted: str, schema: str) -> bool:
    """Whether `said` gives what `wanted` gives on every database of `schema` (one CREATE TABLE). A statement that does
    not run means nothing. Raises `ValueError` where `wanted` itself does not run."""
    ordered = re.search(r"\bORDER\s+BY\b", wanted, re.IGNORECASE) is not None
    for seed in range(DATABASES):
        database = _database(schema, wanted, seed)
        right = _result(database, wanted)
        if right is None:
            raise ValueError(f"the right statement does not run: {wanted!r}")
        result = _result(database, said)
        database.close()
        if result is None or not _equal(result, right, ordered):
            return False
    return True


def _equal(result: Rows, right: Rows, ordered: bool) -> bool:
    return result == right if ordered else Counter(map(repr, result)) == Counter(map(repr, right))


def _database(schema: str, wanted: str, seed: int) -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.execute(schema)
    table, kinds = _columns(schema)
    values = _values(wanted)
    rng = random.Random(seed)
    rows = [[_draw(rng, kind, values) for kind in kinds] for _ in range(ROWS)]
    database.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * len(kinds))})", rows)  # names from our own data
    database.set_authorizer(_only_reading)
    left = [STEPS // 1000]
    database.set_progress_handler(lambda: _count_down(left), 1000)
    return database


def _count_down(left: list[int]) -> int:
    left[0] -= 1
    return int(left[0] < 0)


def _only_reading(action: int, *_: object) -> int:
    allowed = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION)
    return sqlite3.SQLITE_OK if action in allowed else sqlite3.SQLITE_DENY


def _columns(schema: str) -> tuple[str, list[str]]:
    match = TABLE.match(schema.strip())
    if match is None:
        raise ValueError(f"not one CREATE TABLE: {schema!r}")
    return match.group(1), [part.split()[-1].upper() for part in match.group(2).split(",")]


def _values(wanted: str) -> tuple[list[str], list[float]]:
    found = [match.groups() for match in LITERAL.finditer(wanted)]
    texts = [text.replace("''", "'") for text, _ in found if text is not None]
    numbers = [float(number) for _, number in found if number is not None]
    return texts, numbers


def _draw(rng: random.Random, kind: str, values: tuple[Sequence[str], Sequence[float]]) -> object:
    texts, numbers = values
    if kind == "TEXT":
        return rng.choice([*texts, *texts, *WORDS])
    near = [number + step for number in numbers for step in (-1, 0, 0, 1)]
    drawn = rng.choice([*near, *(rng.randint(0, 100) for _ in range(4))])
    return int(drawn) if kind.startswith("INT") else float(drawn) + rng.choice((0.0, 0.25))


def _result(database: sqlite3.Connection, statement: str) -> Rows | None:
    try:
        rows = database.execute(statement).fetchall()
    except (sqlite3.Error, sqlite3.Warning, ValueError):
        return None
    return [tuple(round(v, 6) if isinstance(v, float) else v for v in row) for row in rows]
