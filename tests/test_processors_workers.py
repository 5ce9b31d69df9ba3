"""Workers die, hang and are replaced; only the culprit's request fails, and nothing is left behind."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from decoding_loop import VOCABULARY, Loop, labelled

from harness.errors import ConfigError
from harness.method import AsyncProcessor, Processor
from harness.processors import masker_for
from harness.processors.seated import LIVES

METHODS = [Processor("user_engines:FAULTY", timeout_s=2.0), AsyncProcessor("user_engines:FAULTY", timeout_s=2.0)]
TESTS = Path(__file__).parent


@pytest.fixture(scope="module", params=METHODS, ids=["processor", "async"])
def masker(request):
    masker = masker_for(request.param, VOCABULARY)
    yield masker
    masker.stop()


def workers() -> list[psutil.Process]:
    return [p for p in psutil.Process().children() if p.status() != psutil.STATUS_ZOMBIE and "-P" in p.cmdline()]


DEATHS = {
    "exits hard": ("processor", "the worker exited with code 3"),
    "crashes": ("processor", "the worker was ended by SIGSEGV"),
    "is killed": ("processor", "the worker was ended by SIGKILL"),
    "hangs": ("timeout", "took longer than 2 s, so its worker was ended"),
}


@pytest.mark.parametrize("place", ["compile", "fill"])
@pytest.mark.parametrize("deed", DEATHS)
def test_only_the_culprit_of_a_dead_worker_fails_and_others_go_on_from_their_tokens(masker, place, deed):
    loop = Loop(masker)
    neighbours = [labelled("first", "no evidence found"), labelled("second", "abcabc", "yes")]
    loop.open(*neighbours)
    loop.step()
    loop.open(labelled("culprit", f"{place} {deed}"), labelled("third", "found"))
    while loop.running:
        loop.step()
    assert [loop.text(name) for name in ("first", "third")] == ["no evidence found", "found"]
    assert loop.text("second") in ("abcabc", "yes")
    assert set(loop.failures) == {"culprit"}
    kind, message = DEATHS[deed]
    assert loop.failures["culprit"].failure == kind
    assert message in loop.failures["culprit"].message


def test_nobody_fails_when_an_idle_worker_is_killed(masker):
    loop = Loop(masker)
    loop.open(labelled("first", "no evidence found"), labelled("second", "abcabc"))
    loop.step()
    time.sleep(0.2)  # until the worker is idle
    (worker,) = workers()
    worker.kill()
    while loop.running:
        loop.step()
    assert [loop.text(name) for name in ("first", "second")] == ["no evidence found", "abcabc"]
    assert worker.pid not in [p.pid for p in workers()]


def test_a_request_is_given_up_when_workers_keep_dying_of_no_known_cause(masker):
    """A worker that dies again and again does not keep the loop for ever."""
    loop = Loop(masker)
    loop.open(labelled("r", "abcabc"))
    for _ in range(LIVES):
        loop.step()
        time.sleep(0.2)
        (worker,) = workers()
        worker.kill()
    while loop.running:
        loop.step()
    assert f"the worker was ended by SIGKILL, {LIVES} times" in loop.failures["r"].message


def test_a_worker_ends_with_its_parent_even_when_it_is_busy(tmp_path):
    """No orphan is left by kill -9."""
    code = f"""
import sys, time
sys.path[:0] = [{str(TESTS)!r}]
from harness.constraint import Labels
from harness.method import AsyncProcessor
from harness.processors import masker_for
from harness.request import Request, Sampling
from harness.vocabulary import Vocabulary
method = AsyncProcessor("user_engines:FAULTY", workers=2)
masker = masker_for(method, Vocabulary((b"a", None), (1,), 2))
masker.open(Request("r", "e", (1,), Labels(("compile spins",)), method, Sampling(1)))
print("open", flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=_env(), stdout=subprocess.PIPE)
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"open\n"
    children = psutil.Process(parent.pid).children()
    assert len(children) == 2
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert psutil.wait_procs(children, timeout=20)[1] == []


def test_users_code_is_found_in_the_working_folder_and_may_print(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import os\n"
        "def factory(constraint, vocabulary):\n"
        "    print('made in', os.getcwd())\n"
        "    return lambda inputs, logits: logits\n"
    )
    code = f"""
import sys
sys.path[:0] = [{str(TESTS)!r}]
from decoding_loop import VOCABULARY, Loop, labelled
from harness.method import Processor
from harness.processors import masker_for
masker = masker_for(Processor(call="mine:factory"), VOCABULARY)
loop = Loop(masker)
loop.run(labelled("r", "x"))
masker.stop()
print(len(loop.said["r"]), loop.failures)
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, env=_env(), capture_output=True, text=True)
    assert done.stdout.split(maxsplit=1)[1:] == ["{}\n"]
    assert f"made in {tmp_path}" in done.stderr


@pytest.mark.parametrize(
    ("method", "found"),
    [
        (Processor(call="no_such_module:factory"), "cannot import 'no_such_module'"),
        (Processor(call="user_engines:nothing"), "has no callable 'nothing'"),
        (Processor(call="user_broken:factory"), "ZeroDivisionError"),
        (Processor(call="user_exits:factory"), "exited with code 5, 3 times while it started"),
        (Processor("no_such_engine"), "'no_such_engine' is not known"),
        (AsyncProcessor("user_engines:FAULTY", workers=0), "workers: 0"),
        (AsyncProcessor("user_engines:FAULTY", timeout_s=0.0), "timeout_s: 0"),
    ],
)
def test_what_cannot_work_at_all_is_refused_before_any_request(method, found, tmp_path, monkeypatch):
    (tmp_path / "user_broken.py").write_text("1 / 0\n")
    (tmp_path / "user_exits.py").write_text("import os; os._exit(5)\n")
    monkeypatch.chdir(tmp_path)
    before = len(workers())
    with pytest.raises(ConfigError, match=found):
        masker_for(method, VOCABULARY)
    assert len(workers()) == before


def test_nothing_is_left_behind_by_many_requests(masker):
    loop = Loop(masker)
    me = psutil.Process()

    def held():
        (worker,) = workers()
        return me.num_fds(), worker.num_fds(), len(me.children(recursive=True)), me.num_threads()

    loop.run(*(labelled(f"warm {n}", "yes", "no") for n in range(16)))
    before = held()
    for start in range(0, 320, 16):
        loop.run(
            *(labelled(f"{start + n}", f"label {start + n}", "no") for n in range(15)),
            labelled(f"bad {start}", "compile raises"),
        )
    assert held() == before
    assert len(loop.failures) == 20


def test_stopping_ends_workers_and_closes_their_files():
    me = psutil.Process()
    before = me.num_fds(), len(workers())
    masker = masker_for(AsyncProcessor("user_engines:FAULTY", workers=2), VOCABULARY)
    masker.open(labelled("r", "yes"))
    masker.stop()
    masker.stop()
    assert (me.num_fds(), len(workers())) == before


def _env() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(TESTS.parent)}
