"""Messages and shared memory between the loop and a worker."""

import contextlib
import os
import socket

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from harness.constraint import Labels
from harness.processors.channel import LoopEnd, WorkerEnd
from harness.processors.messages import Close, Frames, FromWorker, Hello, Open, Prepare, Row, ToWorker, frame
from harness.processors.segment import IDLE, Segment, create

rows = st.builds(Row, st.integers(1, 2**40), st.integers(0, 999), st.lists(st.integers(0, 2**18)).map(tuple))
messages = st.lists(
    st.one_of(
        st.builds(Close, st.integers(1, 2**40)),
        st.builds(Prepare, st.lists(rows).map(tuple)),
        st.builds(Open, st.just(1), st.just(0), st.builds(Labels, st.tuples(st.text())), st.just(())),
    )
)


@given(messages, st.data())
def test_messages_survive_any_cut_of_the_stream(sent, data):
    stream = b"".join(frame(message) for message in sent)
    cuts = data.draw(st.lists(st.integers(0, len(stream))).map(sorted))
    decoder = msgspec.msgpack.Decoder(ToWorker)
    frames = Frames()
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert [decoder.decode(payload) for piece in pieces for payload in frames.feed(piece)] == sent


def test_the_loop_does_not_block_on_a_worker_that_reads_nothing():
    ours, theirs = socket.socketpair()
    end, worker = LoopEnd(ours), WorkerEnd(theirs)
    long = Open(1, 0, Labels(("x" * 100_000,)), ())
    for _ in range(50):
        end.send(long)
    read = 0
    while read < 50:
        assert worker.next() == long
        read += 1
        end.flush()
    end.close()
    assert worker.next() is None
    worker.close()


def test_a_worker_that_is_gone_closes_the_channel():
    ours, theirs = socket.socketpair()
    end, worker = LoopEnd(ours), WorkerEnd(theirs)
    worker.send(Hello())
    worker.close()
    received: list[FromWorker] = end.receive()
    assert received == [Hello()]
    assert end.receive() == []
    assert end.closed
    end.send(Close(1))
    end.close()


@given(st.permutations(range(40)))
def test_rows_written_on_one_side_are_read_on_the_other_however_the_memory_grows(order):
    ours = create(64)
    theirs = Segment(os.dup(ours.fileno()), 64)
    for index in order:
        ours.row(index, np.int32, 16)[:] = index + 1
        assert (theirs.row(index, np.int32, 16) == index + 1).all()
        theirs.row(index, np.int32, 16)[:] *= 3
    assert [int(ours.row(index, np.int32, 16)[15]) for index in range(40)] == [3 * (n + 1) for n in range(40)]
    ours.close()
    theirs.close()


def test_the_other_side_sees_what_a_worker_is_busy_with_until_it_is_done():
    ours = create(64)
    theirs = Segment(os.dup(ours.fileno()), 64)
    with contextlib.suppress(RuntimeError), theirs.at(7):
        assert ours.busy_with()[0] == 7
        raise RuntimeError
    assert ours.busy_with()[0] == IDLE
    ours.close()
    theirs.close()
