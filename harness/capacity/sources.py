"""Where mask times come from: a benchmark of masks, or the records of a run."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.capacity.sweep import Sweep
from harness.errors import ConfigError
from harness.mask_bench.folder import MANIFEST, read_manifest, read_rows
from harness.record import read_slim

Groups = Sequence[NDArray[np.float64]]


def mask_times(folder: Path) -> dict[str, Groups]:
    """Engine or arm -> seconds of masks, an array for each schema or request. A run's records hold the mean of each
    request only, so that dear single masks do not show. Raises `ConfigError`."""
    found = _found(folder)
    if not any(one.size for groups in found.values() for one in groups):
        raise ConfigError(
            f"masks: nothing in {folder} says how long masks took", "one that made masks", "mend the path"
        )
    return {name: groups for name, groups in found.items() if any(one.size for one in groups)}


def measured_masks(sweep: Sweep) -> Groups:
    """Seconds of masks that workers made while the model ran: the mean of each turn at each batch size."""
    return [np.array(sweep.at("async", batch).mask_s) for batch in sweep.batches]


def _found(folder: Path) -> dict[str, Groups]:
    if (folder / MANIFEST).is_file():
        return _of_benchmark(folder)
    if (folder / "records.jsonl").is_file():
        return _of_run(folder)
    raise ConfigError(f"masks: no benchmark and no run in {folder}", "the folder of one", "mend the path")


def _of_benchmark(folder: Path) -> dict[str, Groups]:
    rows = read_rows(folder)
    return {
        name: [np.array([us / 1e6 for case in row.engines[name].cases for us in case.us]) for row in rows]
        for name in read_manifest(folder).config.engines
    }


def _of_run(folder: Path) -> dict[str, Groups]:
    found: dict[str, list[NDArray[np.float64]]] = {}
    for record in read_slim(folder / "records.jsonl"):
        if record.cost.mask_s is not None and record.tokens:
            found.setdefault(record.arm, []).append(np.array([record.cost.mask_s / record.tokens]))
    return dict(found)
