"""The parts of the SGLang deployment that need no server; the rest is in tests/live."""

import io
import json
import math
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.constraint import Grammar, JsonSchema, Labels, Regex
from harness.deployments.inside.telemetry import KEY, Told, cost, told
from harness.deployments.sglang.bundle import bundle
from harness.deployments.sglang.config import SGLang, SGLangLaunch
from harness.deployments.sglang.courier import Courier
from harness.deployments.sglang.faults import RejectedError, TimedOutError, UnavailableError
from harness.deployments.sglang.native import server_grammar
from harness.deployments.sglang.starting import command_of
from harness.deployments.sglang.stops import cut_at_stop
from harness.deployments.sglang.trace import Seen, completed, first_trace
from harness.deployments.sglang.values import TokenLogprob
from harness.errors import ConfigError, DeploymentError, Unsupported
from harness.masks.whitespace import PATTERN
from harness.method import Native, Processor
from harness.request import Request, Sampling
from harness.vocabulary import Vocabulary

LITTLE = Vocabulary((b"a", b"b", None), (2,), 3)


def row(log_mass: float, rewritten: int = 0) -> Told:
    return msgspec.convert([log_mass, 2, 0, -0.1, 0.01, 0.02, 0.03, 0.0, 1, 0, rewritten, 1], Told)


# Numbers


def test_one_case_gives_the_four_numbers_of_one_definition() -> None:
    """BC-31: logits yes 1, no 0, the 3; yes and no allowed."""
    total = math.log(math.e + 1 + math.e**3)
    log_mass = math.log(math.e + 1) - total
    masked = 1 - math.log(math.e + 1)
    trace = first_trace(Seen((0,), (masked,), (row(log_mass),), masked=True, greedy=True))
    assert trace.raw_logprob[0] is not None
    assert trace.masked_logprob[0] is not None
    assert math.exp(trace.raw_logprob[0]) == pytest.approx(0.1142, abs=1e-4)
    assert math.exp(trace.masked_logprob[0]) == pytest.approx(0.7311, abs=1e-4)
    assert trace.mass == pytest.approx((0.1562,), abs=1e-4)


def test_a_tempered_value_is_never_taken_for_an_untempered_one() -> None:
    """BC-31: at temperature 0.5 the server says 0.8808; no column may hold that."""
    tempered = math.log(0.8808)
    for rows in (None, (row(-1.0),)):
        seen = Seen((0,), (tempered,), rows, masked=True, greedy=False)
        scored = [TokenLogprob(0, None, math.log(0.1142), (TokenLogprob(2, None, -0.2),))]
        trace = completed(seen, first_trace(seen), scored)
        columns = [getattr(trace, name)[0] for name in ("raw_logprob", "masked_logprob", "wanted_logprob")]
        assert not [value for value in columns if value is not None and abs(value - tempered) < 1e-6]


def test_new_logits_tell_no_unmasked_value_by_their_mass() -> None:
    seen = Seen((0,), (-0.5,), (row(-1.0, rewritten=1),), masked=True, greedy=True)
    assert not seen.whole
    assert first_trace(seen).raw_logprob == (None,)


def test_rows_that_do_not_fit_the_tokens_are_no_telemetry() -> None:
    whole = [[-0.1, 2, 0, -0.1, 0.01, 0.02, 0.03, 0.0, 1, 0, 0, 1]]
    assert told({KEY: whole}, 1) == (row(-0.1),)
    assert told({KEY: [*whole, None]}, 2) is None
    assert told({KEY: whole}, 2) is None
    assert told({}, 0) is None


def test_costs_add_up_over_tokens_and_say_nothing_of_the_forward_pass() -> None:
    found = cost([row(-0.1), row(-0.2)])
    assert (found.mask_s, found.wait_s, found.apply_s) == pytest.approx((0.02, 0.04, 0.06))
    assert (found.steps, found.rows, found.forward_s) == (2, 1.0, None)


# Stop strings


@given(st.text("abc", max_size=12), st.lists(st.text("abc", min_size=1, max_size=3), max_size=3))
def test_a_text_is_cut_at_the_earliest_stop_string(text: str, stops: list[str]) -> None:
    cut = cut_at_stop(text, stops)
    if cut is None:
        assert not [stop for stop in stops if stop in text]
    else:
        assert any(text.startswith(cut + stop) for stop in stops)
        assert not [stop for stop in stops if text.find(stop) >= 0 and text.find(stop) < len(cut)]


# Grammars


def test_labels_and_regexes_go_out_in_a_spelling_that_all_backends_read_alike() -> None:
    """BC-07: anchors at the ends mean nothing; what engines read differently is refused."""
    server = {"grammar_backend": "xgrammar"}
    assert server_grammar(Labels(("a.b", "c")), server).text == r"(a\.b|c)"
    anchored, bare = (server_grammar(Regex(pattern), server).text for pattern in ("^(yes|no)$", "(yes|no)"))
    assert anchored == bare
    for pattern in ("(?!no)[a-z]+", r"\bcat\b", r"(?=.*\d)[a-z0-9]{4}"):
        with pytest.raises(Unsupported):
            server_grammar(Regex(pattern), server)


def test_white_space_in_json_is_what_the_constraint_says_or_refused() -> None:
    schema = '{"type": "object"}'
    sent = json.loads(server_grammar(JsonSchema(schema), {"grammar_backend": "llguidance"}).text)
    assert sent["x-guidance"]["whitespace_pattern"] == PATTERN
    with pytest.raises(Unsupported, match="--constrained-json-disable-any-whitespace"):
        server_grammar(JsonSchema(schema, "compact"), {"grammar_backend": "xgrammar"})
    strict = {"grammar_backend": "xgrammar", "constrained_json_disable_any_whitespace": True}
    assert server_grammar(JsonSchema(schema, "compact"), strict).text == schema


def test_grammars_go_out_in_the_backends_dialect() -> None:
    grammar = Grammar('root ::= "a" root? "b"')
    assert server_grammar(grammar, {"grammar_backend": "llguidance"}).text.startswith("start:")
    assert server_grammar(grammar, {"grammar_backend": "xgrammar"}).text.startswith("root ::=")
    with pytest.raises(Unsupported, match="outlines takes no grammars"):
        server_grammar(grammar, {"grammar_backend": "outlines"})


# Processors on their way


def request(method: Processor) -> Request:
    return Request("r", "e", (1,), Labels(("a",)), method, Sampling(4))


def test_all_requests_carry_the_same_string_and_little_of_it() -> None:
    """Rows with equal strings are handed over in one call; what differs travels as parameters."""
    courier = Courier(LITTLE, 1)
    first, second = (courier.processor(request(Processor(engine=name))) for name in ("llguidance", "xgrammar"))
    assert first.code == second.code
    assert first.params != second.params
    assert len(first.code) < 20_000


def test_the_bundle_holds_what_the_server_runs_and_not_the_client() -> None:
    names = zipfile.ZipFile(io.BytesIO(bundle((), LITTLE).data)).namelist()
    assert "harness/processors/worker.py" in names
    assert "harness/masks/lm_format_enforcer/__init__.py" in names
    assert not [name for name in names if name.startswith(("harness/deployments/sglang", "harness/report"))]


def test_equal_content_is_an_equal_bundle() -> None:
    assert bundle((), LITTLE) == bundle((), LITTLE)
    other = Vocabulary((b"a", b"c", None), (2,), 3)
    assert bundle((), other).key != bundle((), LITTLE).key


def test_a_users_module_is_shipped_with_what_it_imports() -> None:
    names = zipfile.ZipFile(io.BytesIO(bundle(("live.bad_processors",), LITTLE).data)).namelist()
    assert {"live/bad_processors.py", "live/helper_of_processors.py", "live/__init__.py"} <= set(names)
    with pytest.raises(ConfigError, match="no module 'nowhere'"):
        bundle(("nowhere",), LITTLE)


def test_a_bundle_runs_where_the_harness_is_not_installed(tmp_path: Path) -> None:
    """It is put on the import path of a bare interpreter, with its libraries alone."""
    packed = tmp_path / "bundle.zip"
    packed.write_bytes(bundle((), LITTLE).data)
    libraries = [entry for entry in sys.path if "site-packages" in entry]
    program = (
        f"import sys; sys.path[:0] = [{str(packed)!r}]; sys.path += {libraries!r}\n"
        "import harness.deployments.inside.runtime as runtime\n"
        f"assert runtime.__file__.startswith({str(packed)!r}), runtime.__file__\n"
        f"print(runtime.about('llguidance'), runtime.started({str(packed)!r})._vocabulary.width)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-P", "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith(" 3")


def test_the_string_unpickles_to_a_factory_without_the_harness() -> None:
    """Nothing but the standard library is needed to unpickle it."""
    courier = Courier(LITTLE, 1)
    code = bytes.fromhex(json.loads(courier.processor(request(Processor(engine="llguidance"))).code)["callable"])
    assert b"harness.deployments.sglang" not in code
    assert callable(pickle.loads(code)())


def test_a_servers_error_kind_tells_which_failure_it_is() -> None:
    assert Courier.failure_kind("harness:timeout") == "timeout"
    assert Courier.failure_kind("harness:something new") == "deployment"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RejectedError("Failed to compile regex grammar: x", status=400), "unsupported"),
        (RejectedError("no state", status=400, server_kind="harness:processor"), "processor"),
        (RejectedError("a wrong key", status=401), "rejected"),
        (TimedOutError("no complete answer within 3 s"), "timeout"),
        (UnavailableError("grammar accept_token failed", status=500), "deployment"),
    ],
)
def test_every_error_of_the_client_is_one_kind_of_failure(error: Exception, kind: str) -> None:
    from harness.deployments.sglang.failing import failure_of

    assert failure_of(error)[0] == kind  # type: ignore[arg-type]


# Configuration


def test_a_command_says_everything_that_decides_an_answer() -> None:
    config = SGLangLaunch(
        python=sys.executable, device="cpu", dtype="float32", overlap="off", tp=2, arguments=("--x", "y"), port=31999
    )
    command = command_of(config)
    line = " ".join(command.arguments)
    for part in ("--dtype float32", "--tp-size 2", "--disable-overlap-schedule", "--device cpu", "--x y"):
        assert part in line
    assert "--enable-custom-logit-processor" in command.arguments
    assert command.environment["SGLANG_ENABLE_DELAY_SAMPLE"] == "0"


def test_delayed_sampling_is_what_servers_are_started_with() -> None:
    command = command_of(SGLangLaunch(python=sys.executable, device="cpu", port=31999))
    assert command.environment["SGLANG_ENABLE_DELAY_SAMPLE"] == "1"
    assert "--disable-overlap-schedule" not in command.arguments


def test_an_interpreter_that_is_not_there_is_said_with_what_to_do() -> None:
    with pytest.raises(DeploymentError, match="make sglang-cpu"):
        command_of(SGLangLaunch(python="./no/such/python"))


@pytest.mark.parametrize("wrong", [{"timeout_s": 0.0}, {"attempts": 0}, {"tp": 0}, {"restarts": -1}])
def test_settings_that_make_no_sense_are_refused_by_name(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        SGLangLaunch(**wrong)  # type: ignore[arg-type]


def test_no_config_holds_a_key() -> None:
    assert "key" not in [name for name in SGLang.__struct_fields__ if name != "api_key_variable"]
    assert Native().engine == "llguidance"
