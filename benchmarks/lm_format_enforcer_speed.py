"""What lm-format-enforcer costs here and as it is, on the same tokens in the same run, and whether both say the same.

    python benchmarks/lm_format_enforcer_speed.py --data maskbench_sample/schemas.jsonl --rounds 3

Each line of the data is `{"id", "schema", "tests": [{"valid", "data"}]}`, as in MaskBench. The valid instances are
written as JSON, tokenised and walked token by token (advance, then make the mask) up to the first token that is not
allowed. "As it is" is the library's `TokenEnforcer` with lists of tokens, one a schema, over a table made from the same
vocabulary. A first pass compares the tokens; then, in each round, both start anew and take turns schema by schema.
Averages are of the thread's own processor time, so that other work on the machine does not count; quantiles are of the
clock. A schema on which one side takes longer than `--limit` seconds is left out. Compilation is shown apart. Python's
collector is told to leave alone what was there before (the tables, torch), for both.
"""

import argparse
import gc
import hashlib
import json
import logging
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
from lmformatenforcer import CharacterLevelParserConfig, JsonSchemaParser, TokenEnforcer, TokenEnforcerTokenizerData
from numpy.typing import NDArray
from tokenizers import Tokenizer

from harness.constraint import json_schema
from harness.deployments.embedded.weights import default_weights
from harness.errors import Unsupported
from harness.mask import Automaton, Matcher, allowed, empty_mask
from harness.masks.lm_format_enforcer import ENGINE
from harness.tokens import vocabulary
from harness.vocabulary import Vocabulary


class Row(msgspec.Struct):
    """One schema with its valid instances as token ids."""

    id: str
    schema: dict[str, Any]
    instances: list[list[int]]


class Sequence(Protocol):
    """One sequence on one side."""

    def mask(self, said: list[int]) -> None:
        """Take the last token of `said`, if any, and make the next mask; this is what is timed."""

    def tokens(self) -> NDArray[np.int64]:
        """What the last mask allows."""


class Library:
    """The library as it is, over the tokens of `known` that are whole characters (others it cannot read). Its alphabet
    is the characters of these tokens, and it has it from the start, as its settings allow."""

    def __init__(self, known: Vocabulary) -> None:
        texts = {i: text for i in range(len(known.tokens)) if (text := whole_text(known, i)) is not None}
        pairs = [(i, text, False) for i, text in texts.items()]
        self._data = TokenEnforcerTokenizerData(
            pairs, lambda ids: known.text(ids).rstrip("\ufffd"), list(known.stop_ids), False, known.width
        )
        self._data.tokenizer_alphabet = "".join(sorted({letter for text in texts.values() for letter in text}))

    def compile(self, schema: dict[str, Any]) -> TokenEnforcer:
        """A `TokenEnforcer` that shares no regexes with others; without the keyword `self`, on which the library's own
        class fails."""
        JsonSchemaParser._Context.regex_parser_cache.clear()
        settings = CharacterLevelParserConfig(alphabet=self._data.tokenizer_alphabet)
        plain = {keyword: value for keyword, value in schema.items() if keyword != "self"}
        return TokenEnforcer(self._data, JsonSchemaParser(plain, settings))

    def start(self, compiled: TokenEnforcer) -> Sequence:
        return _Enforced(compiled)


class _Enforced:
    def __init__(self, enforcer: TokenEnforcer) -> None:
        self._enforcer = enforcer
        self._list: list[int] = []

    def mask(self, said: list[int]) -> None:
        self._list = self._enforcer.get_allowed_tokens(said).allowed_tokens

    def tokens(self) -> NDArray[np.int64]:
        return np.unique(np.array(self._list, dtype=np.int64))


class Here:
    """The harness's engine."""

    def __init__(self, known: Vocabulary) -> None:
        self._compiler = ENGINE.compiler(known)
        self._width = known.width

    def compile(self, schema: dict[str, Any]) -> Automaton:
        return self._compiler.compile(json_schema(schema))

    def start(self, compiled: Automaton) -> Sequence:
        return _Matched(compiled.matcher(), self._width)


class _Matched:
    def __init__(self, matcher: Matcher, width: int) -> None:
        self._matcher = matcher
        self._mask = empty_mask(width)
        self._width = width

    def mask(self, said: list[int]) -> None:
        if said:
            self._matcher.advance(said[-1])
        self._matcher.fill(self._mask)

    def tokens(self) -> NDArray[np.int64]:
        return allowed(self._mask, self._width)


Side = Library | Here


def whole_text(known: Vocabulary, token: int) -> str | None:
    """The text of a token that holds whole characters and nothing else."""
    data = known.tokens[token] if token < len(known.tokens) else None
    if not data or token in known.stop_ids:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def whole(known: Vocabulary) -> NDArray[np.bool_]:
    """Which tokens hold whole characters, or stop."""
    return np.array([i in known.stop_ids or whole_text(known, i) is not None for i in range(known.width)])


def read(path: Path, tokenizer: Tokenizer, stop: int) -> list[Row]:
    """The schemas of `path` that have a valid instance."""
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        texts = [json.dumps(test["data"], ensure_ascii=False) for test in row["tests"] if test["valid"]]
        instances = [[*tokenizer.encode(text, add_special_tokens=False).ids, stop] for text in texts]
        if instances and isinstance(row["schema"], dict):
            rows.append(Row(row["id"], row["schema"], instances))
    return rows


def digests(side: Side, row: Row, kept: NDArray[np.bool_]) -> list[list[bytes]]:
    """A digest of the tokens among `kept` at each step of each instance, up to the first token not allowed."""
    compiled = side.compile(row.schema)
    return [list(_digests(side.start(compiled), ids, kept)) for ids in row.instances]


def _digests(sequence: Sequence, ids: list[int], kept: NDArray[np.bool_]) -> Iterator[bytes]:
    for size, token in enumerate(ids):
        sequence.mask(ids[:size])
        tokens = sequence.tokens()
        yield hashlib.sha1(tokens[kept[tokens]].tobytes()).digest()
        if token not in tokens:
            return


class Time(msgspec.Struct):
    """One side on one schema: seconds of processor time for compiling and for all masks; seconds by the clock for each
    mask."""

    compile_s: float
    masks_s: float
    mask_s: list[float]


def timed(side: Side, row: Row) -> Time:
    started = time.thread_time()
    compiled = side.compile(row.schema)
    done = Time(time.thread_time() - started, 0.0, [])
    for ids in row.instances:
        sequence, started = side.start(compiled), time.thread_time()
        for size in range(len(ids)):
            before = time.perf_counter()
            sequence.mask(ids[:size])
            done.mask_s.append(time.perf_counter() - before)
        done.masks_s += time.thread_time() - started
    return done


class TooLong(BaseException):
    """A schema took longer than its limit. Not an `Exception`: the library would swallow it."""


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise `TooLong` after `seconds`."""

    def stop(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def compared(rows: list[Row], library: Library, here: Here, kept: NDArray[np.bool_], limit_s: float) -> list[Row]:
    """The rows that both sides can walk, each instance cut where its walk ends; says what is left out and what
    differs."""
    followed, steps, differing = [], 0, 0
    for row in rows:
        try:
            with limit(limit_s):
                ours = digests(here, row, kept)
                theirs = digests(library, row, kept)
        except Unsupported as unsupported:
            print(f"unsupported: {row.id}: {unsupported.reason}")
            continue
        except TooLong:
            print(f"left out, longer than {limit_s} s: {row.id}")
            continue
        unlike = sum(
            a != b for mine, others in zip(ours, theirs, strict=True) for a, b in zip(mine, others, strict=True)
        )
        if unlike:
            print(f"DIFFERENT TOKENS: {row.id} at {unlike} steps")
        steps, differing = steps + sum(map(len, ours)), differing + unlike
        cut = [ids[: len(walk)] for ids, walk in zip(row.instances, ours, strict=True)]
        followed.append(Row(row.id, row.schema, cut))
    print(f"{len(followed)} of {len(rows)} schemas, {steps} masks: {differing} with other tokens than the library's")
    return followed


def one_round(rows: list[Row], library: Library, here: Here) -> tuple[list[Time], list[Time]]:
    """The library's times and the harness's, a value a schema."""
    library_times: list[Time] = []
    here_times: list[Time] = []
    for i, row in enumerate(rows):
        turns: list[tuple[Side, list[Time]]] = [(library, library_times), (here, here_times)]
        for side, times in turns if i % 2 else reversed(turns):
            times.append(timed(side, row))
    return library_times, here_times


def show(rounds: list[tuple[list[Time], list[Time]]]) -> None:
    """Times of the last round, ratios of all."""
    for name, times in zip(("as it is", "here"), rounds[-1], strict=True):
        us = np.array([mask_s for time_ in times for mask_s in time_.mask_s]) * 1e6
        at = np.quantile(us, [0.5, 0.9, 0.99, 1.0])
        compile_ms = np.quantile([time_.compile_s * 1e3 for time_ in times], [0.5, 0.99])
        print(
            f"{name:>9}: us a mask: average {average(times) * 1e6:,.0f}, p50 {at[0]:,.0f}, p90 {at[1]:,.0f}, "
            f"p99 {at[2]:,.0f}, max {at[3]:,.0f}; compile ms p50 {compile_ms[0]:.2f}, p99 {compile_ms[1]:.1f}"
        )
    for name, of in (("average", average), ("median", median), ("average with compilation", average_with_compilation)):
        ratios = [of(library) / of(here) for library, here in rounds]
        print(f"{name}: {np.median(ratios):.1f} times lower here (rounds: {', '.join(f'{one:.1f}' for one in ratios)})")


def average(times: list[Time]) -> float:
    return sum(time_.masks_s for time_ in times) / sum(len(time_.mask_s) for time_ in times)


def average_with_compilation(times: list[Time]) -> float:
    return average(times) + sum(time_.compile_s for time_ in times) / sum(len(time_.mask_s) for time_ in times)


def median(times: list[Time]) -> float:
    return float(np.median([mask_s for time_ in times for mask_s in time_.mask_s]))


def main() -> None:
    arguments = _arguments()
    logging.disable(logging.ERROR)  # the library logs a traceback for each schema that it cannot follow
    folder = arguments.tokenizer or default_weights()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    known = vocabulary(folder, tokenizer.get_vocab_size(), (arguments.stop,))
    rows = read(arguments.data, tokenizer, arguments.stop)[: arguments.first]
    library, here = Library(known), Here(known)
    gc.collect()
    gc.freeze()
    rows = compared(rows, library, here, whole(known), arguments.limit)
    rounds = [one_round(rows, library, here) for _ in range(arguments.rounds)]
    show(rounds)
    print(f"most memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, help="a folder with tokenizer.json (default: the default model's)")
    parser.add_argument("--stop", type=int, default=2, help="the id of the stop token")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds a schema, both sides together")
    parser.add_argument("--first", type=int, help="only so many schemas")
    return parser.parse_args()


if __name__ == "__main__":
    main()
