"""The targets of goodput: those that a run names in its config, and what they say in a report."""

from collections.abc import Sequence

import msgspec

from harness.manifest import Manifest
from harness.metrics.targets import NO_TARGETS, Targets


def targets_of(manifest: Manifest) -> Targets:
    """The targets of a run; none for runs from before there were any."""
    return msgspec.convert(manifest.config.get("goodput", {}), Targets)


def shared(manifests: Sequence[Manifest]) -> tuple[Targets, tuple[str, ...]]:
    """One set of targets for runs that are compared: the first that is set; and a sentence where runs differ in them,
    for each run then stands under targets that it may not have named."""
    named = [targets_of(manifest) for manifest in manifests]
    chosen = next((targets for targets in named if targets.limits_s), NO_TARGETS)
    if all(targets == chosen for targets in named):
        return chosen, ()
    return chosen, (f"The runs name different goodput targets; here all of them are held to {limits(chosen)}.",)


def limits(targets: Targets) -> str:
    """`TTFT ≤ 200 ms and TPOT ≤ 50 ms`."""
    return " and ".join(f"{name[:-2].upper()} ≤ {limit_s * 1e3:g} ms" for name, limit_s in targets.limits_s.items())


def note(targets: Targets) -> str:
    """What goodput means under a table that shows it; empty where no target is set."""
    if not targets.limits_s:
        return ""
    return (
        f"Goodput: answers a second with {limits(targets)}, whatever they say; correct goodput: those of them that are "
        "valid and right."
    )
