"""The tasks that ship with the project: enough rows, no doubles, and right answers that a second way of looking at them
confirms (schema validators, exact arithmetic, SQLite, the grammar's own recogniser)."""

import ast
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from harness.constraint import Grammar, JsonSchema, Labels, accepts, check, judge
from harness.grammar import derives
from harness.prompt import Template

TASKS = Path(__file__).resolve().parent.parent / "tasks"
COLUMNS = {
    "intents": ("id", "text", "label"),
    "extraction": ("id", "text", "answer"),
    "word_problems": ("id", "question", "answer", "expression"),
    "sql": ("id", "question", "schema", "sql"),
}
SAID = {"intents": "text", "extraction": "text", "word_problems": "question", "sql": "question"}
NUMBER_WORDS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
NUMBER_WORDS |= {"seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12}
DELIVERY_WORDS = {"standard": r"\bstandard\b", "express": r"\bexpress\b", "pickup": r"\bpick(s|up)?\b|\bcollects?\b"}
all_tasks = pytest.mark.parametrize("task", COLUMNS)


@cache
def read(task: str) -> tuple[dict[str, Any], ...]:
    lines = (TASKS / task / "test.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(json.loads(line) for line in lines)


def text_of(task: str, name: str) -> str:
    return (TASKS / task / name).read_text(encoding="utf-8")


@all_tasks
def test_a_task_has_at_least_160_rows_with_its_columns_and_ids_in_order(task: str) -> None:
    rows = read(task)
    assert len(rows) >= 160
    assert {tuple(row) for row in rows} == {COLUMNS[task]}
    assert [row["id"] for row in rows] == [f"{task.replace('_', '-')}-{i:03d}" for i in range(1, len(rows) + 1)]


@all_tasks
def test_no_two_rows_ask_the_same(task: str) -> None:
    asked = Counter(
        " ".join(re.findall(r"\w+", f"{row[SAID[task]]} {row.get('schema', '')}".casefold())) for row in read(task)
    )
    assert [text for text, times in asked.items() if times > 1] == []


@all_tasks
def test_texts_are_clean_and_vary_in_length(task: str) -> None:
    texts = [row[SAID[task]] for row in read(task)]
    assert [text for text in texts if text != text.strip() or "\n" in text or not text.isprintable()] == []
    assert len({len(text) for text in texts}) > 40
    assert sum(not text.isascii() for text in texts) >= 8


@all_tasks
def test_the_prompt_takes_every_row_and_ends_with_what_is_asked(task: str) -> None:
    template = Template(text_of(task, "prompt.txt"), task)
    prompts = [template.render(row) for row in read(task)]
    tails = [prompt.rpartition(row[SAID[task]])[2] for prompt, row in zip(prompts, read(task), strict=True)]
    assert len(set(tails)) == 1
    assert len(tails[0]) <= 20


@all_tasks
def test_the_worked_examples_are_no_rows(task: str) -> None:
    prompt = text_of(task, "prompt.txt")
    assert [row["id"] for row in read(task) if row[SAID[task]] in prompt] == []


@all_tasks
def test_the_readme_says_how_many_rows_there_are_and_names_the_licence(task: str) -> None:
    readme = text_of(task, "README.md")
    assert f"{len(read(task))} rows" in readme
    assert "CC0-1.0" in readme


def test_every_intent_has_the_same_number_of_messages() -> None:
    labels = json.loads(text_of("intents", "labels.json"))
    check(Labels(tuple(labels)))
    counts = Counter(row["label"] for row in read("intents"))
    assert set(counts) == set(labels)
    assert set(counts.values()) == {len(read("intents")) // len(labels)}
    assert min(counts.values()) >= 10


def test_intents_hold_labels_that_begin_like_others_that_have_spaces_and_that_are_not_ascii() -> None:
    """BC-02: a method that ends at the shorter of two such labels is seen on this task."""
    labels = json.loads(text_of("intents", "labels.json"))
    assert sum(a != b and b.startswith(a) for a in labels for b in labels) >= 4
    assert sum(" " in label for label in labels) >= 4
    assert sum(not label.isascii() for label in labels) >= 3


def test_every_right_extraction_meets_the_schema_for_both_validators() -> None:
    schema = JsonSchema(text_of("extraction", "schema.json"))
    check(schema)
    for row in read("extraction"):
        verdict = judge(schema, json.dumps(row["answer"], ensure_ascii=False))
        assert (verdict.accepted, verdict.disagreement) == (True, ""), row["id"]


def test_the_extraction_schema_refuses_what_it_does_not_name() -> None:
    schema = JsonSchema(text_of("extraction", "schema.json"))
    good = {"customer": "Ana", "items": [{"name": "mugs", "qty": 2}]}
    assert accepts(schema, json.dumps(good))
    for extra in ({"note": "x"}, {"delivery": "drone"}, {"city": None}, {"items": []}):
        assert not accepts(schema, json.dumps(good | extra)), extra


def test_every_text_in_a_right_extraction_stands_in_the_order() -> None:
    for row in read("extraction"):
        texts = [row["answer"][key] for key in ("customer", "city") if key in row["answer"]]
        texts += [item["name"] for item, _ in items(row["answer"]["items"])]
        assert [text for text in texts if text not in row["text"]] == [], row["id"]


def test_every_quantity_in_a_right_extraction_stands_in_the_order() -> None:
    for row in read("extraction"):
        words = [numeral(word) for word in re.findall(r"\w+", row["text"].casefold())]
        wanted = [item["qty"] for item, _ in items(row["answer"]["items"])]
        assert [qty for qty in wanted if qty not in words] == [], row["id"]


def test_an_extraction_has_a_delivery_exactly_where_the_order_says_one() -> None:
    for row in read("extraction"):
        said = [kind for kind, words in DELIVERY_WORDS.items() if re.search(words, row["text"].casefold())]
        assert said == [row["answer"][key] for key in ("delivery",) if key in row["answer"]], row["id"]


def test_extractions_cover_every_shape_of_the_schema() -> None:
    answers = [row["answer"] for row in read("extraction")]
    depths = Counter(max(depth for _, depth in items(answer["items"])) for answer in answers)
    assert depths[2] >= 30
    assert depths[3] >= 10
    assert Counter("city" in answer for answer in answers)[False] >= 40
    assert min(Counter(answer.get("delivery") for answer in answers).values()) >= 20


def test_every_word_problem_has_the_answer_that_its_arithmetic_gives() -> None:
    for row in read("word_problems"):
        assert str(value(ast.parse(row["expression"], mode="eval").body)) == row["answer"], row["id"]
        assert re.fullmatch(r"-?(0|[1-9][0-9]{0,5})", row["answer"]), row["id"]


def test_word_problems_do_not_give_their_answer_away() -> None:
    given = [row["id"] for row in read("word_problems") if row["answer"] in re.findall(r"-?\d+", row["question"])]
    assert len(given) <= 8, given


def test_some_word_problems_have_negative_answers() -> None:
    assert sum(row["answer"].startswith("-") for row in read("word_problems")) >= 12


def test_every_right_query_is_in_the_grammar() -> None:
    check(Grammar(text_of("sql", "grammar.ebnf")))
    refused = [row["id"] for row in read("sql") if not derives(text_of("sql", "grammar.ebnf"), row["sql"])]
    assert refused == []


@pytest.mark.parametrize(
    "text",
    [
        "SELECT name FROM dogs",
        "SELECT  name FROM dogs;",
        "select name from dogs;",
        "SELECT *, name FROM dogs;",
        "SELECT name FROM dogs WHERE age > 3 AND;",
        "SELECT name FROM dogs LIMIT 0;",
        "SELECT name FROM dogs ORDER BY age LIMIT 5 WHERE age > 3;",
        "SELECT name FROM dogs; DROP TABLE dogs;",
    ],
)
def test_the_sql_grammar_refuses_what_is_outside_the_subset(text: str) -> None:
    assert not derives(text_of("sql", "grammar.ebnf"), text)


def test_every_right_query_runs_on_its_table() -> None:
    for row in read("sql"):
        with sqlite3.connect(":memory:") as database:
            database.execute(row["schema"])
            database.execute(row["sql"]).fetchall()
        database.close()


def test_right_queries_use_every_part_of_the_subset() -> None:
    parts = ("*", "COUNT(*)", "SUM(", "AVG(", "MIN(", "MAX(", " WHERE ", " AND ", " OR ", " GROUP BY ", " ORDER BY ")
    parts += (" ASC", " DESC", " LIMIT ", " = ", " != ", " < ", " > ", " <= ", " >= ", "'", ".")
    assert [part for part in parts if sum(part in row["sql"] for row in read("sql")) < 3] == []


def test_every_string_in_a_right_query_stands_in_its_question() -> None:
    for row in read("sql"):
        missing = [text for text in re.findall(r"'([^']*)'", row["sql"]) if text not in row["question"]]
        assert missing == [], row["id"]


def items(of: list[dict[str, Any]], depth: int = 1) -> Iterator[tuple[dict[str, Any], int]]:
    """Items and their parts, each with its depth."""
    for item in of:
        yield item, depth
        yield from items(item.get("parts", []), depth + 1)


def numeral(word: str) -> int | None:
    return int(word) if word.isdecimal() else NUMBER_WORDS.get(word)


def value(node: ast.expr) -> Fraction:
    """What the arithmetic says, exactly; raises `ValueError` for anything but numbers, `+ - * /` and brackets."""
    match node:
        case ast.Constant(value=int(number)):
            return Fraction(number)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -value(operand)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return value(left) + value(right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return value(left) - value(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return value(left) * value(right)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return value(left) / value(right)
    raise ValueError(f"not arithmetic: {ast.unparse(node)}")
