"""Fields that a user adds to requests: sorted by where they go, and never silently lost or silently winning."""

from collections.abc import Mapping
from typing import Any

import msgspec

from harness.errors import ConfigError

TEMPLATE = frozenset(
    {
        "add_generation_prompt",
        "chat_template_kwargs",
        "continue_final_message",
        "reasoning_effort",
        "tool_choice",
        "tools",
    }
)
"""Fields of the chat template; they go with the messages."""

BODY = frozenset(
    {
        "bootstrap_host",
        "bootstrap_port",
        "bootstrap_room",
        "cache_salt",
        "custom_labels",
        "extra_key",
        "log_metrics",
        "lora_path",
        "max_thinking_tokens",
        "no_logs",
        "priority",
        "require_reasoning",
        "routed_dp_rank",
        "routing_key",
        "session_id",
        "session_params",
    }
)
"""Top-level fields of `/generate` in SGLang 0.5.23 that change no log-probability and no form of the answer. Unlike
unknown `sampling_params`, unknown fields up there are ignored by the server without a word, so they are refused
here."""


class Extra(msgspec.Struct, frozen=True):
    """A user's fields by where they go: with the messages, at the top of `/generate`, in its `sampling_params`."""

    template: Mapping[str, Any] = {}
    body: Mapping[str, Any] = {}
    sampling: Mapping[str, Any] = {}


def sorted_extra(extra_body: Mapping[str, Any] | None) -> Extra:
    """`extra_body` sorted. Raises `ConfigError` for a field that would go nowhere."""
    fields = dict(extra_body or {})
    sampling = fields.pop("sampling_params", {})
    if not isinstance(sampling, Mapping):
        raise ConfigError(f"extra_body.sampling_params: {sampling!r}", "a mapping of fields", "mend it")
    if unknown := sorted(set(fields) - TEMPLATE - BODY):
        raise ConfigError(
            f"extra_body: {unknown[0]!r} is no field that this client can add",
            f"sampling_params, or one of {', '.join(sorted(TEMPLATE | BODY))}",
            "put sampling fields (top_p, regex, ...) into extra_body['sampling_params']; the rest are set by arguments",
        )
    template = {name: value for name, value in fields.items() if name in TEMPLATE}
    body = {name: value for name, value in fields.items() if name in BODY}
    return Extra(template, body, dict(sampling))


def merged(own: Mapping[str, Any], extra: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Both together. Raises `ConfigError` where both set a field: neither may win silently."""
    if clash := sorted(set(own) & set(extra)):
        raise ConfigError(
            f"{where}: {clash[0]!r} is set by the client already",
            "fields that it does not set",
            "use the client's own argument for it",
        )
    return {**own, **extra}
