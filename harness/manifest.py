"""What a run was (config, versions, model, data, seed, machine, git state), and whether its folder may be resumed."""

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec
import psutil

from harness import __version__
from harness.dataset import PROJECT
from harness.deployment import DeploymentInfo
from harness.errors import ResumeError

PACKAGES = (
    *("torch", "transformers", "tokenizers", "datasets", "numpy", "hydra-core", "httpx", "msgspec", "sglang"),
    *("lm-format-enforcer", "llguidance", "xgrammar", "outlines", "outlines-core", "jsonschema", "jsonschema-rs"),
)


FREE = frozenset({"folder", "allow_failures", "block", "goodput"})
"""Keys of the config that do not make another run."""

DIFFERENCES = 3
"""How many keys are named where two runs are not the same."""


class Manifest(msgspec.Struct, frozen=True):
    """`identity` is equal exactly for runs whose records may stand in one file: same examples, prompts, arms, sampling,
    model. `notes` are rules that were applied and a reader should know. `sessions` are the processes that wrote the
    records, each with its start (instant) and command."""

    identity: str
    task: str
    arms: tuple[str, ...]
    seed: int
    config: dict[str, Any]
    deployment: DeploymentInfo
    data_digest: str
    examples: int
    unlabelled: int
    notes: tuple[str, ...]
    versions: dict[str, str]
    machine: dict[str, Any]
    git: dict[str, Any]
    sessions: tuple[dict[str, Any], ...]
    startup_s: dict[str, float] = {}
    preflight: tuple[dict[str, Any], ...] = ()


def identity(config: dict[str, Any], deployment: DeploymentInfo, data_digest: str) -> str:
    """SHA-256 (16 hex digits) of everything that decides what an answer is. The folder, how fast or in what order
    things are asked, and within which targets an answer is in time, do not."""
    decisive = {key: value for key, value in config.items() if key not in FREE}
    content = msgspec.json.encode([decisive, deployment.fingerprint, deployment.name, data_digest], order="sorted")
    return hashlib.sha256(content).hexdigest()[:16]


def check_resume(path: Path, now: Manifest) -> Manifest | None:
    """The manifest of a folder that may be resumed; None where it is new. Raises `ResumeError` for another set-up."""
    if not path.exists():
        return None
    found = msgspec.json.decode(path.read_bytes(), type=Manifest)
    if found.identity != now.identity:
        raise ResumeError(
            f"folder {path.parent}: it holds a run with another set-up ({_difference(found, now)})",
            "the same config, examples and model as before",
            "give another folder, or repeat the first command (it stands in manifest.json)",
        )
    return found


def _difference(before: Manifest, now: Manifest) -> str:
    """The first values in which two runs differ, in words."""
    then, new = (dict(_leaves(msgspec.json.decode(msgspec.json.encode(one.config)), "")) for one in (before, now))
    keys = [key for key in then | new if then.get(key) != new.get(key) and key.partition(".")[0] not in FREE]
    told = [f"{key} was {then.get(key)!r}, now {new.get(key)!r}" for key in keys[:DIFFERENCES]]
    more = [f"{len(keys) - DIFFERENCES} more"] if len(keys) > DIFFERENCES else []
    return "; ".join([*told, *more]) or "the examples, the model or their digests differ"


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(part, f"{path}.{key}" if path else key)
    else:
        yield path, value


def write(path: Path, manifest: msgspec.Struct) -> None:
    """Write atomically."""
    draft = path.with_suffix(".tmp")
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=1))
    draft.replace(path)


def note_machine(path: Path, facts: dict[str, Any]) -> None:
    """Add what was seen of the machine during the run to a manifest that is written already."""
    manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    write(path, msgspec.structs.replace(manifest, machine=manifest.machine | facts))


def versions() -> dict[str, str]:
    """The versions of what the numbers depend on; packages that are not installed are left out."""
    found = {"python": platform.python_version(), "harness": __version__}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """Processor, cores, memory and system."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
    }


def git_state() -> dict[str, Any]:
    """Commit of the harness and whether files differ from it; empty where it is not a checkout."""
    commit = _git("rev-parse", "HEAD")
    return {"commit": commit, "changed": bool(_git("status", "--porcelain"))} if commit else {}


def session(started_s: float) -> dict[str, Any]:
    """This process, as the manifest keeps it."""
    return {"started_s": started_s, "command": " ".join(sys.argv[1:])}


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=PROJECT, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
