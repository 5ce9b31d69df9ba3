"""The process in which one engine works. It knows one vocabulary, answers one job at a time, and ends when its pipe
closes or when a job takes longer on the clock than it may, so that it outlives nobody."""

import gc
import logging
import os
import resource
import signal
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

import msgspec

from harness.constraint import Constraint, Regex, json_schema, judge
from harness.errors import Unsupported
from harness.mask import Automaton, Compiler, empty_mask, words
from harness.mask_bench.messages import (
    Answer,
    Begins,
    Compiled,
    Complete,
    Done,
    Ended,
    Job,
    Judge,
    Ready,
    Refused,
    Said,
    Verdicts,
    Walk,
)
from harness.mask_bench.walking import along, begins, look_us, to_an_end
from harness.masks import engine
from harness.vocabulary import Vocabulary

GRACE_S = 10.0
KEPT = 2
"""Automata kept: a schema's own, and that of any JSON."""
MASKS_BYTES = 128 * 2**20
"""Masks of one schema that are kept to be compared; later ones are only timed and checked."""
ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")


class Bench:
    """An engine's compiler and the automata of the last constraints."""

    def __init__(self, compiler: Compiler, known: Vocabulary) -> None:
        self._compiler = compiler
        self._known = known
        self._kept: dict[Constraint, Automaton] = {}
        self._look_us = look_us()

    def answer(self, job: Job) -> Iterator[Said]:
        """What there is to say to a job. Raises what the library raises."""
        match job:
            case Walk(constraint=constraint, sequences=sequences):
                started = time.process_time()
                automaton = self._keep(constraint, self._compiler.compile(constraint))
                yield Compiled(time.process_time() - started)
                left = MASKS_BYTES // (4 * words(self._known.width))
                for ids in sequences:
                    yield (walked := along(automaton, ids, self._known.width, self._look_us, left))
                    left = max(left - len(walked.us), 0)
                yield Done(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
            case Complete(constraint=constraint, ids=ids, seeds=seeds):
                automaton = self._automaton(constraint)
                ends = [to_an_end(automaton, ids, self._known, seed) for seed in seeds]
                texts = tuple(dict.fromkeys(text for text in ends if text is not None))
                yield Ended(texts, tuple(judge(constraint, text).accepted for text in texts))
            case Begins(constraint=constraint, ids=ids):
                yield Answer(begins(self._automaton(constraint), ids))
            case Judge(constraint=constraint, texts=texts):
                yield Verdicts(tuple(judge(constraint, text).accepted for text in texts))

    def _automaton(self, constraint: Constraint) -> Automaton:
        return self._kept.get(constraint) or self._keep(constraint, self._compiler.compile(constraint))

    def _keep(self, constraint: Constraint, automaton: Automaton) -> Automaton:
        self._kept.pop(constraint, None)
        while len(self._kept) >= KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[constraint] = automaton
        return automaton


def main(pipe: Connection, name: str, known: Vocabulary, wall_s: float) -> None:
    """The process."""
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.ERROR)  # a library logs a traceback for each schema that it cannot follow
    started = time.perf_counter()
    library = engine(name)
    bench = Bench(library.compiler(known), known)
    _warm(bench, known)
    gc.collect()
    gc.freeze()  # the tables are no rubbish
    pipe.send_bytes(msgspec.msgpack.encode(Ready(time.perf_counter() - started, library.version())))
    while True:
        try:
            job = msgspec.msgpack.decode(pipe.recv_bytes(), type=Job)
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_REAL, wall_s + GRACE_S)  # whose signal ends the process
        for said in _answered(bench, job):
            pipe.send_bytes(msgspec.msgpack.encode(said))
        signal.setitimer(signal.ITIMER_REAL, 0)


def _answered(bench: Bench, job: Job) -> Iterator[Said]:
    """Whatever a library raises is its answer to this job: finding that out is what the benchmark is for."""
    try:
        yield from bench.answer(job)
    except Unsupported as unsupported:
        yield Refused(True, unsupported.reason)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic in Rust is no Exception
        yield Refused(False, f"{type(error).__name__}: {str(error)[:300]}")


def _warm(bench: Bench, known: Vocabulary) -> None:
    """What a library puts off to its first mask or its first string is paid before the first schema."""
    for constraint in (json_schema({"type": "object", "properties": {"a": {"type": "string"}}}), Regex("[a-z]{1,3}")):
        single = {token: i for i, token in enumerate(known.tokens) if token and len(token) == 1}
        said = '{"a":"b"}' if constraint != Regex("[a-z]{1,3}") else "ab"
        ids = tuple(single[bytes([byte])] for byte in said.encode() if bytes([byte]) in single)
        for _ in _answered(bench, Walk(constraint, (ids,))):
            empty_mask(known.width)
