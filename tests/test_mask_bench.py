"""The mask benchmark on real engines: walks, limits, agreement, going on, and its reports."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.__main__ import main
from harness.constraint import JsonSchema, Regex, json_schema, judge
from harness.deployments.embedded.weights import DEFAULT_MODEL
from harness.errors import ConfigError, DataError, ResumeError
from harness.mask import words
from harness.mask_bench.agreement import pair_rows
from harness.mask_bench.bench import Bench, row
from harness.mask_bench.config import Limits, MasksConfig, decode
from harness.mask_bench.folder import RECORDS, read_rows
from harness.mask_bench.guard import Broken, Guarded
from harness.mask_bench.instances import Budget, Case, Instance, read
from harness.mask_bench.judging import unspaced
from harness.mask_bench.messages import Walk
from harness.mask_bench.numbers import summarise, verdict
from harness.mask_bench.pathologies import pathologies
from harness.mask_bench.report import write
from harness.mask_bench.rows import CaseRow, EngineRow, Row
from harness.mask_bench.texts import engines
from harness.mask_bench.tokenizer import Known, load
from harness.mask_bench.walking import along, look_us
from tests.contract.walking import a_vocabulary, compiler
from tests.tokenizers_built import byte_level, sentencepiece_style

CONFIG = MasksConfig(("llguidance", "xgrammar"), "pathologies", "", "", limits=Limits(60, 300, 4096))
MEALS = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
LINES: list[dict[str, Any]] = [
    {"id": "meal", "schema": MEALS, "tests": [{"valid": True, "data": {"n": 1}}, {"valid": False, "data": {"n": "x"}}]},
    {"id": "word", "schema": {"type": "string", "maxLength": 3}, "tests": [{"valid": True, "data": "ab"}]},
    {"id": "not said", "schema": {"not": {"type": "string"}}, "tests": [{"valid": True, "data": 1}]},
]


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """Two engines, and the reference that judges, over a small vocabulary."""
    known = Known(byte_level(), a_vocabulary("byte_level"))
    names = (*CONFIG.engines, "reference")
    guarded = {name: Guarded(name, known.vocabulary, CONFIG.limits) for name in names}
    yield (made := Bench(CONFIG, known, {name: guarded[name] for name in CONFIG.engines}, guarded["reference"]))
    made.stop()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A benchmark of two engines on three schemas, from the command line."""
    folder = tmp_path_factory.mktemp("bench")
    (folder / "data.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES), encoding="utf-8")
    byte_level().save(str(folder / "tokenizer.json"))
    config = {"vocab_size": a_vocabulary("byte_level").width, "eos_token_id": 0}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert main(_arguments(folder)) == 0
    return folder


def _arguments(folder: Path, *more: str) -> list[str]:
    chosen = ("engine=[llguidance,outlines]", f"data={folder / 'data.jsonl'}", f"folder={folder / 'run'}")
    return ["masks", *chosen, f"tokenizer={folder}", "samples=1", *more]


def test_valid_texts_are_walked_to_their_end_and_invalid_ones_up_to_the_wrong_token(bench: Bench) -> None:
    found = row(bench, Instance("s", json_schema(MEALS), (Case('{"n": 12}', True), Case('{"n": true}', False))), 0)
    assert found.oracle == (True, False)
    for one in found.engines.values():
        assert (one.outcome, one.cases[0].refused) == ("ok", None)
        assert len(one.cases[0].us) == found.tokens[0]
        assert one.cases[1].refused == len(one.cases[1].us) - 1 < found.tokens[1]


def test_a_schema_that_an_engine_cannot_express_is_a_row_with_the_reason(bench: Bench) -> None:
    found = row(bench, Instance("not", json_schema({"not": {"type": "string"}}), (Case("1", True),)), 0)
    assert {one.outcome for one in found.engines.values()} == {"unsupported"}
    assert all(one.reason and one.compile_s is None for one in found.engines.values())


def test_a_token_that_one_engine_wrongly_forbids_is_shown_to_be_viable(bench: Bench) -> None:
    """llguidance forbids the character 0x7F in strings, which JSON allows; the other allows it."""
    found = row(bench, Instance("del", json_schema({"type": "string"}), (Case('"ab"', True),)), 0)
    dels = [one for one in found.disputed if one.token == "\x7f"]
    assert dels
    assert {(one.allower, one.forbidder, one.finding) for one in dels} == {("xgrammar", "llguidance", "viable")}


def test_masks_that_differ_are_counted_both_ways() -> None:
    ours, theirs = np.array([[0b011], [0b111], [0b1]], np.uint32), np.array([[0b001], [0b1110]], np.uint32)
    (pair,) = pair_rows({"a": [ours], "b": [theirs]})
    assert (pair.steps, pair.differing, pair.first_only_steps, pair.second_only_steps) == (2, 2, 2, 1)
    assert (pair.first_only, pair.second_only, pair.both) == (2, 1, 3)


@pytest.mark.parametrize(
    ("before", "token", "bare"),
    [
        (b'{"a b":', b" 1", b'{"a b":1'),
        (b'{"a', b" b", None),
        (b'{"a\\"', b" b", None),
        (b'{ "a"', b":", None),
        (b'"\\\\"', b"\n", b'"\\\\"'),
    ],
)
def test_white_space_between_json_tokens_is_told_from_that_in_strings(
    before: bytes, token: bytes, bare: bytes | None
) -> None:
    assert unspaced(before, token) == bare


def test_what_takes_too_long_costs_one_job_and_the_next_one_works() -> None:
    """BC-09: outlines makes a large table for two independent long repeats."""
    guarded = Guarded("outlines", a_vocabulary("byte_level"), Limits(0.3, 60, 4096))
    try:
        with pytest.raises(Broken) as broken:
            list(guarded.ask(Walk(Regex("([a-z0-9]{1,400}[a-f]){1,60}"), ())))
        assert broken.value.death == "timeout"
        assert list(guarded.ask(Walk(Regex("[ab]"), ())))
    finally:
        guarded.stop()


@pytest.mark.parametrize(("attribute", "death"), [("GREEDY", "memory"), ("DYING", "crash")])
def test_memory_and_crashes_are_told_apart(attribute: str, death: str) -> None:
    guarded = Guarded(f"tests.bad_mask_engines:{attribute}", a_vocabulary("byte_level"), Limits(30, 60, 600))
    try:
        with pytest.raises(Broken) as broken:
            list(guarded.ask(Walk(Regex("bad"), ())))
        assert broken.value.death == death
    finally:
        guarded.stop()


def test_a_benchmark_ends_with_the_path_of_its_page_and_has_a_line_for_each_schema(finished: Path) -> None:
    assert {one.id for one in read_rows(finished / "run")} == {"meal", "word", "not said"}
    page = (finished / "run" / "masks.html").read_text(encoding="utf-8")
    assert "http" not in page.replace("http-equiv", "")
    assert "<svg" in page
    summary = json.loads((finished / "run" / "summary.json").read_bytes())
    coverage = summary["engines"]["llguidance"]["coverage"]
    assert coverage["value"] == pytest.approx(2 / 3)
    assert coverage["low"] < 2 / 3 < coverage["high"]
    assert summary["engines"]["outlines"]["valid_rejected"]["value"] == 0


def test_a_benchmark_that_was_stopped_goes_on_with_what_is_missing(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = finished / "run" / RECORDS
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(lines[0] + lines[1][:20])
    assert main(_arguments(finished)) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"report: {finished / 'run' / 'masks.html'}"
    after = read_rows(finished / "run")
    assert file.read_bytes().startswith(lines[0])
    assert [one.session for one in after] == [after[0].session, *[after[0].session + 1] * 2]
    assert len({one.id for one in after}) == 3


def test_a_report_is_not_made_of_texts_that_were_not_walked(finished: Path) -> None:
    """Rows name texts by their place."""
    data = finished / "data.jsonl"
    before = data.read_bytes()
    data.write_bytes(before.replace(b'"n": 1}', b'"n": 2}'))
    with pytest.raises(DataError, match="is not what"):
        write(finished / "run")
    data.write_bytes(before)
    assert write(finished / "run").html.is_file()


def test_another_benchmark_does_not_go_on_in_the_same_folder(finished: Path) -> None:
    from harness.config import composed
    from harness.mask_bench.bench import run

    before = (finished / "run" / RECORDS).read_bytes()
    with pytest.raises(ResumeError):
        run(decode(composed("masks", _arguments(finished, "limits.cpu_s=7")[1:])))
    assert (finished / "run" / RECORDS).read_bytes() == before


def test_only_so_many_masks_of_a_text_are_kept_but_all_are_timed() -> None:
    """Long texts would fill the memory with masks that are only compared."""
    known = Known(byte_level(), a_vocabulary("byte_level"))
    automaton = compiler("llguidance", "byte_level").compile(Regex("[ab]+"))
    ids = known.ids("ab" * 10)
    whole, some = (along(automaton, ids, known.vocabulary.width, 0.0, most) for most in (100, 3))
    assert (len(some.us), some.refused) == (len(whole.us), None) == (len(ids), None)
    assert some.masks == whole.masks[: 3 * 4 * words(known.vocabulary.width)]


def test_the_time_of_looking_at_the_clock_is_no_mask_time() -> None:
    automaton = compiler("llguidance", "byte_level").compile(Regex("[ab]+"))
    ids = Known(byte_level(), a_vocabulary("byte_level")).ids("ab")
    assert look_us() > 0
    assert set(along(automaton, ids, a_vocabulary("byte_level").width, 1e9, 0).us) == {0.0}


def test_texts_on_which_data_and_oracle_differ_count_for_no_error() -> None:
    cases = (CaseRow((1.0, 2.0), 1), CaseRow((1.0, 2.0), 1))
    engines = {"e": EngineRow("ok", "", 0.1, cases)}
    made = Row("s", 0, ("e",), (True, True), (False, True), (2, 2), engines, (), ())
    summary = summarise([made], ["e"], [Instance("s", json_schema({}), ())], Limits())
    assert summary.disagreeing == 1
    assert (summary.engines["e"].valid_rejected.n, summary.engines["e"].valid_rejected.value) == (1, 1.0)


def test_only_steps_that_every_engine_reached_are_shared() -> None:
    engines = {
        "a": EngineRow("ok", "", 0.1, (CaseRow((1.0, 2.0, 30.0), None),)),
        "b": EngineRow("ok", "", 0.1, (CaseRow((5.0, 6.0), 1),)),
    }
    made = Row("s", 0, ("a", "b"), (True,), (True,), (3,), engines, (), ())
    found = summarise([made], ["a", "b"], [Instance("s", json_schema({}), ())], Limits()).engines
    assert (found["a"].mask_s.n, found["a"].shared.n, found["b"].shared.n) == (3, 2, 2)
    assert found["a"].shared.max == pytest.approx(2e-6)


def test_the_oracle_judges_every_text_of_the_pathologies_as_they_say() -> None:
    """BC-09, BC-11, BC-12, BC-16: the oracle takes any JSON white space, so the endless one is not wrong to it."""
    wrong = [
        (one.id, case.text[:30])
        for one in pathologies()
        for case in one.cases
        if judge(one.constraint, case.text).accepted != case.valid and "white space" not in one.id
    ]
    assert wrong == []


UNDER = {("xgrammar", "-0"), ("llguidance", "-0")}
"""Valid texts that engines reject, and are shown to."""


@pytest.mark.parametrize("name", ["xgrammar", "llguidance"])
def test_the_verdicts_on_number_bounds_hold_or_are_known_to_be_rejected(bench: Bench, name: str) -> None:
    """BC-12."""
    for instance in pathologies():
        if instance.id.startswith("bounds: "):
            one = row(bench, instance, 0)
            walked = one.engines[name].cases
            got = {case.text: w.refused is None for case, w in zip(instance.cases, walked, strict=True)}
            assert got == {c.text: c.valid and (name, c.text) not in UNDER for c in instance.cases}, instance.id
            found = verdict(one, name, instance)
            assert found == (("wrong", "rejects valid: -0 at token 2 of 3") if "-0" in got else ("ok", ""))


def test_white_space_without_end_is_refused(bench: Bench) -> None:
    """BC-16."""
    (instance,) = [one for one in pathologies() if "white space" in one.id]
    assert all(one.cases[1].refused is not None for one in row(bench, instance, 0).engines.values())


def test_an_unchecked_date_is_no_valid_date() -> None:
    """BC-15."""
    date = JsonSchema('{"type": "string", "format": "date-time"}')
    said = ["2024-13-45", "2024-02-30T25:61:00Z", "2024-02-29T12:00:00Z"]
    assert [judge(date, f'"{one}"').accepted for one in said] == [False, False, True]


def test_texts_are_walked_in_tokens_that_spell_them_whatever_a_tokenizer_does_at_the_start_of_a_text() -> None:
    """A tokenizer as Llama 2 has puts a space before every text, which no compact schema allows."""
    known = Known(sentencepiece_style(), a_vocabulary("sentencepiece"))
    for text in ('{"name": "value"}', "yes", " yes", "", "悪い\n", "\n"):
        ids = known.ids(text)
        assert known.vocabulary.bytes_of(ids[:-1]) == text.encode()
        assert ids[-1] == known.vocabulary.stop_ids[0]


def test_a_text_that_the_tokenizer_drops_characters_of_is_refused_and_not_walked() -> None:
    """Else another text would be walked than the one that was judged."""
    known = load(DEFAULT_MODEL)
    assert known.vocabulary.text(known.ids('{"a": "悪"}')[:-1]) == '{"a": "悪"}'
    with pytest.raises(DataError, match=r"'ab' of the text 'a\\x04b'"):
        known.ids("a\x04b")


def test_a_folder_and_a_file_of_schemas_are_read_alike(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(LINES[0]), encoding="utf-8")
    (tmp_path / "lines.jsonl").write_text(json.dumps(LINES[0]) + "\n", encoding="utf-8")
    (lines,) = read([str(tmp_path / "lines.jsonl")])
    (tmp_path / "lines.jsonl").unlink()
    assert read([str(tmp_path)]) == (lines,)
    assert lines.cases == (Case('{"n": 1}', True), Case('{"n": "x"}', False))


def test_what_cannot_be_read_names_its_place(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"schema": {}, "tests": [{"data": 1}]}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"bad\.jsonl:1.*valid"):
        read([str(tmp_path / "bad.jsonl")])
    with pytest.raises(ConfigError, match="cpu"):
        decode({"engine": "llguidance", "data": "x", "tokenizer": "t", "folder": "f", "limits": {"cpu": 1}})


def _judged(engine: EngineRow, *cases: Case, tokens: int = 2) -> tuple[str, str]:
    instance = Instance("s", Regex("a+"), cases, Budget())
    valid = tuple(case.valid for case in cases)
    oracle = tuple(True for _ in cases)
    return verdict(Row("s", 0, ("e",), valid, oracle, (tokens,) * len(cases), {"e": engine}, (), ()), "e", instance)


def test_a_verdict_goes_by_what_the_set_says_of_its_texts_and_shows_them() -> None:
    """BC-16: the oracle takes endless white space, an engine that does is wrong."""
    said, refused = CaseRow((1.0,), None), CaseRow((1.0, 90_000.0), 1)
    assert _judged(EngineRow("ok", "", 0.1, (said,)), Case("a\n", False)) == ("wrong", "accepts invalid: a\\n")
    long = _judged(EngineRow("ok", "", 0.1, (refused,)), Case("a" * 2000, True), tokens=400)
    assert long == ("wrong", f"rejects valid: {'a' * 24}… (2,000 characters) at token 2 of 400")


def test_what_passes_its_budget_is_slow_and_says_which_mask_it_was() -> None:
    early, late = CaseRow((90_000.0,), 0), CaseRow((1.0, 90_000.0), 1)
    case = Case("b", False)
    assert _judged(EngineRow("ok", "", 0.1, (early,)), case) == ("slow", "the first mask took 90.0 ms")
    assert _judged(EngineRow("ok", "", 0.1, (late,)), case) == ("slow", "mask 2 of text 1 took 90.0 ms")
    assert _judged(EngineRow("ok", "", 1.5, (early,)), case) == ("slow", "compiling took 1.50 s")


def test_a_row_that_a_limit_ended_says_so_and_what_was_wrong_before() -> None:
    died = EngineRow("memory", "masks of text 2 of 2: over 600 MiB", 0.1, (CaseRow((1.0,), None),))
    found = _judged(died, Case("b", False), Case("a", True))
    assert found == ("memory", "masks of text 2 of 2: over 600 MiB; accepts invalid: b")


def test_compiling_that_a_limit_ended_counts_with_the_limit() -> None:
    """Else an engine looks fast for not getting through."""
    rows = [
        Row(str(i), 0, ("e",), (True,), (True,), (1,), {"e": one}, (), ())
        for i, one in enumerate(
            [EngineRow("ok", "", 0.1, (CaseRow((1.0,), None),), 250.0)]
            + [EngineRow("timeout", "compiling: over 30 processor seconds", None, ())] * 2
            + [EngineRow("unsupported", "no", None, ())] * 5
        )
    ]
    instances = [Instance(row.id, json_schema({}), ()) for row in rows]
    summary = summarise(rows, ["e"], instances, Limits())
    assert (summary.engines["e"].compile_s.value, summary.engines["e"].compile_s.n) == (30.0, 3)
    assert summary.engines["e"].memory_mib == 250.0
    shown = {line[0]: line[1] for line in engines(summary).rows}
    assert (shown["compile, p50"], shown["memory, most"]) == ("over 30.0 s", "250 MiB")


def test_verdicts_stand_in_the_order_of_the_set_whatever_was_walked_first() -> None:
    some = pathologies()[:3]
    died = {"e": EngineRow("timeout", "compiling: over 30 processor seconds", None, ())}
    rows = [
        Row(one.id, 0, ("e",), tuple(c.valid for c in one.cases), None, (1,) * len(one.cases), died, (), ())
        for one in reversed(some)
    ]
    assert list(summarise(rows, ["e"], some, Limits()).verdicts) == [one.id for one in some]
