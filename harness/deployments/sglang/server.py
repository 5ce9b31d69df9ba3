"""What a server says of itself: its version, its model, its settings."""

import warnings
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from harness.errors import DeploymentError

TESTED = ("0.5.23",)
"""The SGLang versions that this client was run against."""

_SECRET = ("api_key", "password", "secret", "watermark_key")


def check_server(info: Mapping[str, Any], model: str) -> None:
    """Raise `DeploymentError` for a server of another model than `model` (a served name, a path, or its last part);
    an empty `model` takes any; warn about a version that this client was never run against."""
    served = {str(info[key]) for key in ("served_model_name", "model_path") if info.get(key)}
    short = {PurePosixPath(name).name for name in served}
    if model and served and model not in served | short:
        raise DeploymentError(
            f"the server serves {', '.join(sorted(served))}",
            repr(model),
            "name the model that is served, or mend the URL",
        )
    if (version := info.get("version")) not in TESTED:
        known = ", ".join(TESTED)
        message = f"SGLang {version} was never tested with this client ({known} was): wire formats may differ"
        warnings.warn(message, stacklevel=2)


def without_secrets(info: Any) -> Any:
    """`info` with the values of keys, passwords and the like left out, at any depth: servers send them in clear."""
    if isinstance(info, Mapping):
        return {name: _hidden(name, value) for name, value in info.items()}
    if isinstance(info, list):
        return [without_secrets(value) for value in info]
    return info


def _hidden(name: str, value: Any) -> Any:
    secret = value is not None and any(word in name.lower() for word in _SECRET)
    return "<redacted>" if secret else without_secrets(value)
