"""Whether runs that are compared were asked the same: examples, prompts, model, config; and whether a run is whole.

What differs is said, because a paired difference is the method's only where nothing else changed.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness.manifest import Manifest
from harness.metrics.quality import Counts
from harness.report import numbers
from harness.report.setup import read_manifest, without_secrets
from harness.report.sources import Source

REPORTING = ("folder", "goodput")
"""Config that decides no answer and no time; targets that differ are said where goodput is."""
SHOWN = 12
"""Config keys that are written out at most."""


class _Asked(msgspec.Struct, frozen=True):
    id: str
    prompt_ids: tuple[int, ...]


def differences(sources: Sequence[Source]) -> tuple[str, ...]:
    """One sentence for each way in which a run differs from the first."""
    first, *others = sources
    manifest, prompts = read_manifest(first.folder), _prompts(first.folder)
    found: list[str] = []
    for other in others:
        names = f"{first.name} and {other.name}"
        found += _examples(names, prompts, _prompts(other.folder))
        found += _manifests(names, manifest, read_manifest(other.folder))
    return tuple(found)


def unfinished(source: Source, counts: Mapping[str, Counts]) -> tuple[str, ...]:
    """A sentence where a run has fewer records than it was to make: it was stopped, and can go on."""
    manifest = read_manifest(source.folder)
    made = {arm: counts[name].n if (name := source.arm(arm)) in counts else 0 for arm in manifest.arms}
    short = [f"{source.arm(arm)} {n:,}" for arm, n in made.items() if n < manifest.examples]
    if not short:
        return ()
    of = numbers.plural(manifest.examples, "example")
    return (f"The run is not finished. Of {of} there are records of: {', '.join(short)}.",)


def _prompts(folder: Path) -> dict[str, int]:
    """A hash of the prompt of each example."""
    decoder = msgspec.json.Decoder(_Asked)
    with (folder / "examples.jsonl").open("rb") as file:
        asked = (decoder.decode(line) for line in file if line.endswith(b"\n"))
        return {one.id: hash(one.prompt_ids) for one in asked}


def _examples(names: str, first: Mapping[str, int], other: Mapping[str, int]) -> Iterator[str]:
    shared = first.keys() & other.keys()
    if len(shared) < max(len(first), len(other)):
        sizes = f"{len(first):,} and {len(other):,}"
        yield f"{names} do not have the same examples: {len(shared):,} shared of {sizes}. Only shared ones are paired."
    changed = sum(first[id] != other[id] for id in shared)
    if changed:
        of = f"{changed:,} of {numbers.plural(len(shared), 'shared example')}"
        yield f"{names} do not have the same prompts: they differ on {of}, so differences are also the prompt's."


def _manifests(names: str, first: Manifest, other: Manifest) -> Iterator[str]:
    one, two = first.deployment, other.deployment
    if one.fingerprint != two.fingerprint:
        yield f"{names} do not have the same weights and tokenizer ({one.fingerprint} and {two.fingerprint})."
    if (one.name, one.device, one.dtype) != (two.name, two.device, two.dtype):
        told = " and ".join(f"{info.name}, {info.dtype} on {info.device}" for info in (one, two))
        yield f"{names} ran on other deployments: {told}."
    if first.machine != other.machine:
        yield f"{names} ran on other machines, so their times say nothing about methods."
    if changed := _changed(without_secrets(first.config), without_secrets(other.config)):
        more = f" and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
        yield f"{names} differ in config: {'; '.join(changed[:SHOWN])}{more}."


def _changed(first: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """`load.concurrency: 1, 8` for each key that differs."""
    one, two = dict(_flat(first, "")), dict(_flat(other, ""))
    keys = [key for key in (*one, *(two.keys() - one.keys())) if one.get(key) != two.get(key)]
    return [
        f"{key}: {_short(one.get(key))}, {_short(two.get(key))}" for key in keys if key.split(".")[0] not in REPORTING
    ]


def _flat(values: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def _short(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 60 else text[:59] + "…"
