"""What a started deployment is made of, and the facts about it that go into a run's manifest."""

from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import torch

from harness.deployment import DeploymentInfo
from harness.deployments.embedded.config import Embedded, thread_count
from harness.deployments.embedded.fingerprint import fingerprint
from harness.deployments.embedded.memory import keep_freed_memory
from harness.deployments.embedded.model import Model, load
from harness.errors import DeploymentError
from harness.prompt import Prompter
from harness.tokens import vocabulary
from harness.vocabulary import Vocabulary


@dataclass(frozen=True)
class Loaded:
    """A model, its tokens as bytes, its tokenizer, and what is known about them."""

    model: Model
    vocabulary: Vocabulary
    prompter: Prompter
    info: DeploymentInfo


def loaded(config: Embedded) -> Loaded:
    """Load what `config` names. Raises `DeploymentError`."""
    torch.set_num_threads(thread_count(config.threads))
    keep_freed_memory()
    model, tokenizer, folder = load(config)
    known = vocabulary(tokenizer, model.width, stop_ids(model.network, tokenizer))
    info = DeploymentInfo(
        name="embedded",
        model=config.model,
        fingerprint=fingerprint(folder),
        tokenizer=str(folder),
        width=model.width,
        context=min(config.context, model.room or config.context),
        stop_ids=known.stop_ids,
        dtype=config.dtype,
        device=str(model.device),
        details=_details(config, model),
    )
    return Loaded(model, known, Prompter(tokenizer), info)


def stop_ids(network: Any, tokenizer: Any) -> tuple[int, ...]:
    """The tokens that end an answer: the tokenizer's end and all that the model's generation config names. Raises
    `DeploymentError` where there is none."""
    named = network.generation_config.eos_token_id
    several = named if isinstance(named, list | tuple) else [named]
    found = dict.fromkeys(i for i in (tokenizer.eos_token_id, *several) if i is not None)
    if not found:
        raise DeploymentError("deployment.model: it names no stop token", "a tokenizer with an end token", "set one")
    return tuple(found)


def _details(config: Embedded, model: Model) -> dict[str, Any]:
    return {
        "architecture": type(model.network).__name__,
        "attention": "sdpa",
        "threads": thread_count(config.threads),
        "max_batch": config.max_batch,
        "prefill_chunk": config.prefill_chunk,
        "kept": config.kept,
        "exact": config.exact,
        "seed": config.seed,
        "versions": {name: version(name) for name in ("torch", "transformers", "tokenizers")},
        "accelerator": torch.cuda.get_device_name(model.device) if model.device.type == "cuda" else None,
    }
