"""The command: measure what is not given, predict, check what was measured, and write it down."""

from pathlib import Path

import msgspec

from harness import manifest as manifests
from harness.capacity.check import Check, checked, hiding, waiting
from harness.capacity.config import CapacityConfig, curve
from harness.capacity.model import Capacity, Costs, Forward, capacity
from harness.capacity.report import markdown
from harness.capacity.sources import mask_times, measured_masks
from harness.capacity.sweep import Sweep, arms, sweep
from harness.deployments.embedded.config import Embedded
from harness.report.files import make_folder, write_json, write_text


class Found(msgspec.Struct, frozen=True):
    """Everything that came out. `sweep` is None where nothing was measured; `checks` are empty where not all was."""

    config: CapacityConfig
    forward: Forward
    costs: Costs
    capacities: tuple[Capacity, ...]
    sweep: Sweep | None
    checks: tuple[Check, ...]
    versions: dict[str, str]
    machine: dict[str, object]


def run(config: CapacityConfig) -> Found:
    """Raises `HarnessError` for what is wrong with the set-up, before anything is measured."""
    make_folder(config.path)
    given = mask_times(Path(config.masks)) if config.masks is not None else None
    drawn = curve(config.forward) if config.forward is not None else None
    measured = _measured(config) if drawn is None or given is None else None
    costs = _costs(config, measured)
    forward = drawn if drawn is not None else _there(measured).forward()
    masks = given if given is not None else {config.measure.engine: measured_masks(_there(measured))}
    predict = config.batches, config.seed
    return Found(
        config=config,
        forward=forward,
        costs=costs,
        capacities=tuple(capacity(name, times, forward, costs, *predict) for name, times in masks.items()),
        sweep=measured,
        checks=checked(measured, costs) if measured is not None and len(measured.methods) > 1 else (),
        versions=manifests.versions(),
        machine=manifests.machine(),
    )


def write(found: Found) -> Path:
    """`capacity.json` and `capacity.md`; returns the path of the second."""
    folder = found.config.path
    write_json(folder / "capacity.json", found)
    write_text(folder / "capacity.md", markdown(found.capacities, found.checks, found.costs, found.sweep))
    return folder / "capacity.md"


def _measured(config: CapacityConfig) -> Sweep:
    """All methods where masks are asked for, else the steps without any."""
    methods = arms(config.measure.engine, config.costs.workers)
    if config.masks is not None:
        methods = {"none": methods["none"]}
    return sweep(config.deployment, config.measure, methods)


def _costs(config: CapacityConfig, measured: Sweep | None) -> Costs:
    """What is given, else what was measured, else what is usual."""
    costs = config.costs.over(Costs())
    if measured is None or len(measured.methods) == 1 or not isinstance(config.deployment, Embedded):
        return costs
    from harness.capacity.applying import apply_s

    applied_s = apply_s(config.deployment, measured.info, max(measured.batches), config.seed)
    hidden = hiding(measured) if config.costs.hidden is None else config.costs.hidden
    return config.costs.over(waiting(measured, msgspec.structs.replace(costs, apply_s=applied_s, hidden=hidden)))


def _there(measured: Sweep | None) -> Sweep:
    assert measured is not None, "what is not given is measured"
    return measured
