"""What a run was, for readers: model, versions, seed, rules that were applied, what the first use of an arm cost."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from harness.manifest import Manifest
from harness.record import read_slim
from harness.report import numbers

SECRET = re.compile(r"(api_?key|secret|password|authorization)$", re.IGNORECASE)


class SetUp(msgspec.Struct, frozen=True):
    """Pairs of name and text, and the config as JSON."""

    rows: tuple[tuple[str, str], ...]
    config: str


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a run folder."""
    return msgspec.json.decode((folder / "manifest.json").read_bytes(), type=Manifest)


def is_greedy(manifest: Manifest) -> bool:
    """Whether every token was the most likely one that was allowed."""
    return bool(manifest.config.get("task", {}).get("temperature") == 0)


def set_up(folder: Path, manifest: Manifest) -> SetUp:
    """What the report says of a run."""
    config = msgspec.json.encode(without_secrets(manifest.config))
    return SetUp((*_rows(manifest), *_cold(folder)), msgspec.json.format(config, indent=2).decode())


def without_secrets(value: Any) -> Any:
    """`value` with the values of keys that hold secrets blanked; reports are sent to others."""
    if isinstance(value, dict):
        return {k: "(not shown)" if SECRET.search(k) and v else without_secrets(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [without_secrets(part) for part in value]
    return value


def started(manifest: Manifest) -> str:
    """When the run began, in UTC; empty where it is not known."""
    first = manifest.sessions[0].get("started_s") if manifest.sessions else None
    return "" if first is None else f"{datetime.fromtimestamp(first, UTC):%Y-%m-%d %H:%M} UTC"


def _rows(manifest: Manifest) -> Iterator[tuple[str, str]]:
    info = manifest.deployment
    yield "Model", f"{info.model}, {info.dtype} on {info.device} (weights and tokenizer {info.fingerprint})"
    yield "Deployment", _inline({"name": info.name, "context": info.context, **info.details})
    yield "Examples", _examples(manifest)
    yield "Seed", str(manifest.seed)
    yield "Machine", _inline(manifest.machine)
    yield "Versions", _inline(manifest.versions)
    if manifest.git:
        changed = ", with changes that are not committed" if manifest.git.get("changed") else ""
        yield "Code", f"commit {manifest.git.get('commit')}{changed}"
    if started(manifest):
        yield "Started", started(manifest)
    if len(manifest.sessions) > 1:
        yield "Resumed", f"{len(manifest.sessions)} processes wrote this run; blocks that span two give no throughput."
    for note in manifest.notes:
        yield "Note", note
    for name, seconds in manifest.startup_s.items():
        yield f"Start-up: {name}", numbers.seconds(seconds)
    for check in manifest.preflight:
        yield "Preflight", _inline(check)


def _examples(manifest: Manifest) -> str:
    unlabelled = f", {manifest.unlabelled:,} of them without a right answer" if manifest.unlabelled else ""
    return f"{manifest.examples:,}{unlabelled} (data {manifest.data_digest})"


def _inline(values: Mapping[str, Any]) -> str:
    return " · ".join(f"{key} {value}" for key, value in without_secrets(dict(values)).items() if value is not None)


def _cold(folder: Path) -> Iterator[tuple[str, str]]:
    """The first uncounted request of each arm, which pays for start-up."""
    path, seen = folder / "warmup.jsonl", set[str]()
    if not path.exists():
        return
    for record in read_slim(path):
        if record.arm not in seen and record.e2e_s is not None:
            seen.add(record.arm)
            compiled = record.cost.compile_s
            extra = f", of it {numbers.seconds(compiled)} for compiling the constraint" if compiled else ""
            yield f"First use: {record.arm}", f"first token after {numbers.seconds(record.ttft_s)}{extra}"
