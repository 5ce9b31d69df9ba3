"""Whether an answer is right. White space at the ends counts neither in the answer nor in the right one."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from harness.sql_result import same_meaning


class Exact(msgspec.Struct, frozen=True, tag="exact", tag_field="kind", forbid_unknown_fields=True):
    """Right where the text equals the right answer: labels, or any short text. A longer answer that begins with or
    contains the right one is wrong."""


class Number(msgspec.Struct, frozen=True, tag="number", tag_field="kind", forbid_unknown_fields=True):
    """Right where the text is a number of the same value (`12`, `12.0`, `1,200`); a sentence around it is wrong."""


class Json(msgspec.Struct, frozen=True, tag="json", tag_field="kind", forbid_unknown_fields=True):
    """Right where the parsed value equals the right one (key order and spelling of numbers do not count, order of
    arrays does). Partial credit is the F1 of the leaves, each a path with its value."""


class Sql(msgspec.Struct, frozen=True, tag="sql", tag_field="kind", forbid_unknown_fields=True):
    """Right where running the statement gives what the right one gives, on small databases made from the CREATE TABLE
    in the column `schema` (`harness.sql_result`)."""

    schema: str = "schema"


Scorer = Exact | Number | Json | Sql


class Score(msgspec.Struct, frozen=True):
    """`answer` is what the text was read as (None: it could not be read); `score` is partial credit in [0, 1]."""

    answer: Any
    right: bool
    score: float


def score(scorer: Scorer, text: str, gold: Any, columns: Mapping[str, Any]) -> Score:
    """Judge `text` against `gold`; `columns` are those of the example."""
    match scorer:
        case Exact():
            right = text.strip() == str(gold).strip()
            return Score(text.strip(), right, float(right))
        case Number():
            said, wanted = number(text), number(str(gold))
            right = said is not None and said == wanted
            return Score(text.strip() if said is not None else None, right, float(right))
        case Json():
            return _score_json(text, json.loads(gold) if isinstance(gold, str) else gold)
        case Sql(schema=schema):
            right = same_meaning(text.strip(), str(gold), str(columns[schema]))
            return Score(text.strip(), right, float(right))


def number(text: str) -> Decimal | None:
    """The number that the whole text is; None where it is none. Commas between groups of three digits are allowed."""
    bare = text.strip()
    if "," in bare and not _grouped(bare):
        return None
    try:
        value = Decimal(bare.replace(",", ""))
    except InvalidOperation:
        return None
    return value if value.is_finite() else None


def leaves(value: Any, path: str = "$") -> Iterator[tuple[str, str]]:
    """The leaves of a JSON value as (path, JSON text); an empty object or array is a leaf."""
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from leaves(part, f"{path}.{key}")
    elif isinstance(value, list) and value:
        for index, part in enumerate(value):
            yield from leaves(part, f"{path}[{index}]")
    else:
        yield path, _leaf(value)


def _leaf(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False)


def _grouped(text: str) -> bool:
    head, *groups = text.lstrip("+-").split(".")[0].split(",")
    return 1 <= len(head) <= 3 and all(len(group) == 3 for group in groups)


def _score_json(text: str, gold: Any) -> Score:
    try:
        said = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return Score(None, False, 0.0)
    wanted, found = Counter(leaves(gold)), Counter(leaves(said))
    common = sum((wanted & found).values())
    f1 = 2 * common / (wanted.total() + found.total())
    return Score(said, wanted == found, f1)
