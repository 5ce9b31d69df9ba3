"""A worker: the program that runs engines and users' code away from the decoding loop.

It takes messages from a socket, does one thing at a time (async generators take turns), and answers once for each
message. `harness.processors.process` starts it.
"""

import contextlib
import faulthandler
import gc
import os
import signal
import socket
import threading
import time
from collections.abc import Callable

from harness.errors import HarnessError
from harness.masks import engine
from harness.processors.channel import WorkerEnd
from harness.processors.containment import contained, described
from harness.processors.desk import Calls, Desk, Masks
from harness.processors.messages import (
    CallWork,
    Close,
    Done,
    EngineWork,
    Failed,
    Hello,
    Made,
    Open,
    Opened,
    Prepare,
    Refused,
    Rewrite,
    Row,
    Setup,
)
from harness.processors.protocols import load_factory
from harness.processors.segment import Segment, row_bytes


def main(channel_fd: int, segment_fd: int, life_fd: int) -> None:
    """Work until the other end of the channel is gone. What users' code prints goes to the standard error, where it
    disturbs nothing."""
    os.dup2(2, 1)
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, args=(life_fd,), daemon=True).start()
    _serve(WorkerEnd(socket.socket(fileno=channel_fd)), segment_fd)


def _serve(end: WorkerEnd, segment_fd: int) -> None:
    setup = end.next()
    if not isinstance(setup, Setup):
        return
    segment = Segment(segment_fd, row_bytes(setup.work, setup.vocabulary.width))
    try:
        work = _work(setup, end, segment)
    except HarnessError as error:
        end.send(Refused(error.found, error.wanted, error.fix))
    except BaseException as error:  # engines and users' modules are loaded here: whatever they do refuses the set-up
        end.send(Refused(described(error), "a worker that starts", "mend what it loads"))
    else:
        _keep_collector_off_start_up()
        if setup.ahead:
            _let_the_model_run()
        end.send(Hello())
        work()
    finally:
        segment.close()
        end.close()


def _work(setup: Setup, end: WorkerEnd, segment: Segment) -> Callable[[], None]:
    match setup.work:
        case EngineWork(engine=name):
            desk: Desk = Masks(engine(name), setup.vocabulary, segment)
        case CallWork(call=call):
            factory = load_factory(call)
            _one_torch_thread()
            if setup.ahead:
                from harness.processors.turns import Turns

                return Turns(factory, setup, end, segment).run
            desk = Calls(factory, setup.vocabulary, segment)
    return lambda: _one_by_one(desk, end, segment, setup.ahead)


def _one_by_one(desk: Desk, end: WorkerEnd, segment: Segment, ahead: bool) -> None:
    while (message := end.next()) is not None:
        match message:
            case Open(key=key, row=row):
                opened = _opened(desk, segment, message)
                end.send(opened)
                if ahead and isinstance(opened, Opened):
                    end.send(Done((_made(desk, segment, Row(key, row, ())),)))
            case Prepare(rows=rows) | Rewrite(rows=rows):
                end.send(Done(tuple(_made(desk, segment, row) for row in rows)))
            case Close(key=key):
                contained(key, lambda: desk.close(key))
            case Setup():
                raise AssertionError("a worker is set up once")


def _opened(desk: Desk, segment: Segment, message: Open) -> Opened | Done:
    with segment.at(message.key):
        compile_s = contained(message.key, lambda: desk.open(message.key, message.constraint, message.tokens))
    return Done((compile_s,)) if isinstance(compile_s, Failed) else Opened(message.key, compile_s)


def _made(desk: Desk, segment: Segment, row: Row) -> Made | Failed:
    started = time.perf_counter()
    with segment.at(row.key):
        tokens = contained(row.key, lambda: desk.make(row.key, row.tokens, row.row))
    mask_s = time.perf_counter() - started
    return tokens if isinstance(tokens, Failed) else Made(row.key, tokens, mask_s)


def _let_the_model_run() -> None:
    """A worker that is woken while the model runs takes an idle core or waits its turn; it does not push the model off
    its core."""
    if hasattr(os, "SCHED_BATCH"):
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _one_torch_thread() -> None:
    import torch

    torch.set_num_threads(1)


def _keep_collector_off_start_up() -> None:
    """Tables of engines are large and stay: collections that walk them would be the slowest masks."""
    gc.collect()
    gc.freeze()


def _die_with_parent(life_fd: int) -> None:
    """The other end of `life_fd` closes when the parent is gone, however it ended: end this process and its group,
    busy or not."""
    os.read(life_fd, 1)
    os.killpg(os.getpid(), signal.SIGKILL)
