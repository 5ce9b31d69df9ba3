"""The model itself: loading it, refusing what the slots cannot hold, and one forward pass."""

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import torch

from harness.deployments.embedded.cache import KeyValues, Plan, Shape, SlotCache, causal_plan
from harness.deployments.embedded.weights import DEFAULT_MODEL, default_weights
from harness.errors import DeploymentError

if TYPE_CHECKING:
    from harness.deployments.embedded.config import Embedded

_FILES = ("*.safetensors", "*.safetensors.index.json", "*.json", "*.model", "*.txt", "*.jinja")
_PROBE = (5, 11, 7, 3, 9, 6)
_BESIDE = {torch.bfloat16: 2}
_BESIDE_ELSE = 4
"""Single tokens go through in batches of at least so many (docs/decisions/0006-embedded-equal-sums.md)."""
_NOISE = {torch.float32: 1e-3, torch.float16: 0.1, torch.bfloat16: 0.5}
"""How far two ways to the same log-probability may be apart (nats)."""


class Model:
    """A loaded causal language model. `shape` is what one sequence needs, `width` the number of logits, `room` the
    longest sequence it was made for, `beside` the fewest sequences whose next tokens it computes together."""

    def __init__(self, network: Any, device: torch.device) -> None:
        _check_kind(network)
        self.network = network
        self.device = device
        self.dtype: torch.dtype = network.dtype
        self.beside = _BESIDE.get(self.dtype, _BESIDE_ELSE)
        parameters = inspect.signature(network.forward).parameters
        self.cache_name = "cache" if "cache" in parameters else "past_key_values"
        self._keeps = "logits_to_keep" in parameters
        expected, self.shape = self._probe()
        self.width = expected.shape[-1]
        self.room: int | None = getattr(network.config.get_text_config(), "max_position_embeddings", None)
        self._check_slots(expected)

    @torch.inference_mode()
    def forward(self, cache: SlotCache, plan: Plan) -> torch.Tensor:
        """The logits after the last `plan.keep` tokens of each sequence, float32, shape `(k, keep, width)`."""
        plan = _moved(plan, self.device)
        cache.follow(plan)
        logits = self._call(cache, plan.ids, plan.keep, attention_mask=plan.mask, position_ids=plan.positions)
        return logits[:, -plan.keep :].float()

    def store(self, slots: int) -> KeyValues:
        """Memory for so many sequences."""
        return KeyValues(self.shape, slots, self.dtype, self.device)

    def cache(self, store: KeyValues) -> SlotCache:
        """How this model reads and writes `store`."""
        return SlotCache(store, self.shape.layers)

    def _call(self, cache: Any, ids: torch.Tensor, keep: int, **inputs: torch.Tensor) -> torch.Tensor:
        options: dict[str, Any] = {self.cache_name: cache, "use_cache": True}
        if self._keeps:
            options["logits_to_keep"] = keep
        logits: torch.Tensor = self.network(input_ids=ids, **inputs, **options).logits
        return logits

    @torch.inference_mode()
    def _probe(self) -> tuple[torch.Tensor, Shape]:
        """The logits of a few tokens by transformers' own cache, and the shape of what that cache then holds."""
        cache = _own_cache(self.network)
        logits = self._call(cache, torch.tensor([_PROBE], device=self.device), 1)[0, -1].float()
        sizes = {(layer.keys.shape[1], layer.keys.shape[3], layer.values.shape[3]) for layer in cache.layers}
        if len(sizes) != 1:
            raise _refused(self.network, f"its layers hold keys and values of different shapes: {sorted(sizes)}")
        return logits, Shape(len(cache.layers), *sizes.pop())

    def _check_slots(self, expected: torch.Tensor) -> None:
        """The same tokens through slots, in two passes beside another sequence, give the same logits."""
        store = self.store(2)
        cache = self.cache(store)
        self.forward(cache, causal_plan((0, 1), (0, 0), (_PROBE[:1], _PROBE[:4])))
        logits = self.forward(cache, causal_plan((0, 1), (1, 4), (_PROBE[1:3], _PROBE[4:])))[1, -1]
        apart = (logits.log_softmax(-1) - expected.log_softmax(-1))[expected.argmax()].abs().item()
        if not apart < _NOISE[self.dtype]:
            raise _refused(self.network, f"computed in slots its log-probabilities are {apart:.3g} nats off")


def load(config: "Embedded") -> tuple[Model, Any, Path]:
    """The model, its tokenizer (transformers), and the folder they came from. Raises `DeploymentError`."""
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # the run shows its own
    folder = model_folder(config.model)
    device = _device(config.device)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        network: Any = AutoModelForCausalLM.from_pretrained(
            folder, dtype=getattr(torch, config.dtype), attn_implementation="sdpa", use_safetensors=True
        )
    except (OSError, ValueError, KeyError, ImportError) as error:
        found = (
            f"deployment.model: cannot load {config.model!r}: {str(error).splitlines()[0] if str(error) else error!r}"
        )
        raise DeploymentError(found, "a causal language model with its tokenizer, as safetensors", "mend it") from error
    network.eval()
    return Model(network.to(device), device), tokenizer, folder


def model_folder(model: str) -> Path:
    """The local folder of `model`: the default weights, a folder, or a hub name (downloaded). Raises
    `DeploymentError`."""
    if model == DEFAULT_MODEL:
        return default_weights()
    if (folder := Path(model).expanduser()).is_dir():
        return folder
    if model.startswith((".", "/", "~")) or model.count("/") > 1:
        raise DeploymentError(f"deployment.model: no folder {model!r}", "a folder or a hub name", "mend the path")
    return _downloaded(model)


def _downloaded(model: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(model, allow_patterns=list(_FILES)))
    except (OSError, ValueError, RuntimeError) as error:  # the hub's errors and httpx's have no closer name in common
        found = f"deployment.model: {model!r} is no folder here, and the hub does not give it: {error}"
        raise DeploymentError(found, "a folder or a hub name", "mend the name, or download the model first") from error


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(0, device=name)
        return torch.device(name)
    except (RuntimeError, AssertionError) as error:
        found = f"deployment.device: {name!r}: {str(error).splitlines()[0]}"
        raise DeploymentError(found, "auto, cpu, cuda or cuda:<n>", "use a device that is here") from None


def _check_kind(network: Any) -> None:
    from transformers.cache_utils import DynamicLayer

    if network.config.is_encoder_decoder or getattr(network, "_is_stateful", False):
        raise _refused(network, "it is an encoder-decoder or a state-space model")
    if odd := sorted({type(layer).__name__ for layer in _own_cache(network).layers if type(layer) is not DynamicLayer}):
        raise _refused(network, f"its cache has {', '.join(odd)}")


def _own_cache(network: Any) -> Any:
    from transformers import DynamicCache

    return DynamicCache(config=network.config)


def _refused(network: Any, reason: str) -> DeploymentError:
    found = f"deployment.model: {type(network).__name__} does not fit this deployment: {reason}"
    return DeploymentError(found, "a decoder whose every layer is plain full attention", "serve it with SGLang")


def _moved(plan: Plan, device: torch.device) -> Plan:
    if device.type == "cpu":
        return plan
    parts = {name: getattr(plan, name) for name in plan.__struct_fields__}
    tensors = {name: part.to(device) for name, part in parts.items() if isinstance(part, torch.Tensor)}
    return msgspec.structs.replace(plan, **tensors)
