"""What a server is, read from what it says of itself and from the files of its model where this machine has them."""

import contextlib
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from harness.deployment import DeploymentInfo
from harness.deployments.embedded.fingerprint import fingerprint
from harness.deployments.sglang.backend import SGLangBackend
from harness.deployments.sglang.faults import BackendError
from harness.errors import DeploymentError
from harness.request import Sampling

KEPT = (
    *("version", "model_path", "served_model_name", "tokenizer_path", "revision", "weight_version", "load_format"),
    *("dtype", "quantization", "kv_cache_dtype", "device", "tp_size", "dp_size", "pp_size", "mem_fraction_static"),
    *("grammar_backend", "attention_backend", "sampling_backend", "random_seed", "enable_deterministic_inference"),
    *("disable_overlap_schedule", "disable_radix_cache", "chunked_prefill_size", "max_running_requests"),
    *("max_total_tokens", "max_total_num_tokens", "cuda_graph_config", "disable_cuda_graph", "stream_interval"),
    *("enable_custom_logit_processor", "incremental_streaming_output", "speculative_algorithm", "reasoning_parser"),
    *("constrained_json_disable_any_whitespace", "constrained_json_whitespace_pattern", "skip_tokenizer_init"),
)
"""What `/server_info` says that bears on an answer or on a speed; the rest of it is long and says neither."""


PROBE = tuple(range(10, 26))
"""A prompt of ids that every vocabulary has."""


class Sources(msgspec.Struct, frozen=True):
    """What the server's model is on this side: `tokenizer` and `model` are folders or hub names."""

    tokenizer: str
    model: str


def sources(info: Mapping[str, Any], tokenizer: str) -> Sources:
    """Where the tokenizer and the model's config are read. `tokenizer` empty takes the server's own."""
    model = str(info.get("model_path") or "")
    return Sources(
        tokenizer or str(info.get("tokenizer_path") or model), model if _known(model) else tokenizer or model
    )


def facts(info: Mapping[str, Any], found: Sources, name_weights: str, client: Mapping[str, Any]) -> DeploymentInfo:
    """The deployment as the harness knows it. `name_weights` names the weights where their files are not here, `client`
    is what this side knows of the server's settings. Raises `DeploymentError` where the model's config cannot be read.
    """
    config = _model_config(found.model)
    text = config.get_text_config()
    return DeploymentInfo(
        name="sglang",
        model=str(info.get("served_model_name") or info.get("model_path")),
        fingerprint=_weights(found.model) or name_weights,
        tokenizer=found.tokenizer,
        width=int(text.vocab_size),
        context=_context(info, text),
        stop_ids=_stop_ids(found, config),
        dtype=_dtype(info, text),
        device=str(info.get("device") or "unknown"),
        details={"server": {key: info[key] for key in KEPT if info.get(key) is not None}, **client},
    )


async def weights_name(info: Mapping[str, Any], backend: SGLangBackend) -> str:
    """A name for weights whose files are not here: what the server says of them, and what it answers greedily to a
    fixed prompt. Raises `DeploymentError` where it does not answer."""
    if _weights(str(info.get("model_path") or "")):
        return ""
    said = {key: info.get(key) for key in ("model_path", "revision", "weight_version", "dtype", "quantization")}
    try:
        answer = await backend.agenerate(PROBE, sampling=Sampling(16))
    except BackendError as error:
        raise DeploymentError(f"the server does not answer: {error}", "an answer to a short prompt") from error
    return hashlib.sha256(msgspec.json.encode([said, answer.token_ids], order="sorted")).hexdigest()[:16]


def _known(name: str) -> bool:
    return Path(name).is_dir() or not name.startswith("/")


def _weights(model: str) -> str:
    """The name that the embedded deployment would give to the same files; empty where they are not here."""
    folder = Path(model)
    return fingerprint(folder) if folder.is_dir() and any(folder.glob("*.safetensors")) else ""


def _model_config(model: str) -> Any:
    from transformers import AutoConfig

    try:
        return AutoConfig.from_pretrained(model)
    except (OSError, ValueError) as error:
        raise DeploymentError(
            f"the config of the server's model {model!r} cannot be read here: {str(error).splitlines()[0]}",
            "a folder or hub name with config.json and the tokenizer of the model that the server serves",
            "set deployment.tokenizer to a folder that holds both",
        ) from None


def _context(info: Mapping[str, Any], text: Any) -> int:
    """The longest sequence: the server's setting, the model's length, and what its cache holds, whichever is least."""
    known = (
        info.get("context_length"),
        info.get("max_total_num_tokens"),
        getattr(text, "max_position_embeddings", None),
    )
    return min(int(value) for value in known if value)


def _stop_ids(found: Sources, config: Any) -> tuple[int, ...]:
    """The server ends at the tokenizer's end token and at those of config and generation config. Raises
    `DeploymentError` where there is none."""
    from transformers import AutoTokenizer, GenerationConfig

    named = [AutoTokenizer.from_pretrained(found.tokenizer).eos_token_id, config.eos_token_id]
    with contextlib.suppress(OSError):  # many models have none
        named.append(GenerationConfig.from_pretrained(found.model).eos_token_id)
    several = [value for each in named for value in (each if isinstance(each, list | tuple) else [each])]
    stops = tuple(dict.fromkeys(int(value) for value in several if value is not None))
    if not stops:
        raise DeploymentError(f"the model {found.model!r} names no stop token", "an end token", "use a chat model")
    return stops


def _dtype(info: Mapping[str, Any], text: Any) -> str:
    said = str(info.get("dtype") or "auto")
    own = str(getattr(text, "dtype", None) or "auto").removeprefix("torch.")
    return own if said == "auto" else said
