"""What `python -m harness capacity` takes: configs/capacity.yaml as a frozen object."""

from pathlib import Path

import msgspec

from harness.capacity.model import BATCHES, Costs, Forward, Method, forward_of
from harness.capacity.sweep import LONGEST, Measure
from harness.decoding import decoded
from harness.deployments.configs import DeploymentConfig
from harness.deployments.embedded.config import Embedded
from harness.errors import ConfigError


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The costs that are given; None: as measured where masks are measured, else as in `Costs`."""

    apply_s: float | None = None
    seat_s: float | None = None
    ask_s: float | None = None
    handoff_s: float | None = None
    workers: int = 1
    hidden: tuple[Method, ...] | None = None

    def over(self, costs: Costs) -> Costs:
        """`costs`, with what is given in place of what is there."""
        given = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}
        return msgspec.structs.replace(costs, **given)


class CapacityConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`masks`: the folder of a benchmark of masks or of a run; `forward`: batch size -> milliseconds, or a YAML or JSON
    file that holds it. What is None is measured on `deployment`."""

    deployment: DeploymentConfig
    folder: str
    masks: str | None = None
    forward: dict[int, float] | str | None = None
    batches: tuple[int, ...] = BATCHES
    costs: Known = Known()
    measure: Measure = Measure()
    seed: int = 0

    @property
    def path(self) -> Path:
        """The folder of the results."""
        return Path(self.folder).resolve()


def decode(plain: object) -> CapacityConfig:
    """The config of plain values. Raises `ConfigError`."""
    config = decoded(plain, CapacityConfig, "configs/capacity.yaml")
    if not config.batches or min(config.batches) < 1:
        raise ConfigError(f"batches: {list(config.batches)}", "batch sizes of at least 1", "mend the value")
    config.costs.over(Costs())
    if config.masks is None or config.forward is None:
        _check_measure(config)
    return config


def curve(given: dict[int, float] | str) -> Forward:
    """The forward curve that was given, as it is or as a file. Raises `ConfigError`."""
    if isinstance(given, dict):
        return forward_of(given)
    try:
        return forward_of(msgspec.yaml.decode(Path(given).read_bytes(), type=dict[int, float], strict=False))
    except OSError as error:
        raise ConfigError(f"forward: cannot read {given}: {error.strerror}", "a file", "mend the path") from None
    except msgspec.MsgspecError as error:
        wanted = "batch: milliseconds, a line each"
        raise ConfigError(f"forward: {given}: {error}", wanted, "e.g. {1: 8.5, 32: 11.0}") from None


def _check_measure(config: CapacityConfig) -> None:
    measure, deployment = config.measure, config.deployment
    if not measure.batches or min(measure.batches) < 1 or len(set(measure.batches)) < len(measure.batches):
        raise ConfigError(f"measure.batches: {list(measure.batches)}", "batch sizes, each once", "mend the value")
    if not 2 <= measure.tokens <= LONGEST or measure.turns < 1:
        found = f"measure: {measure.tokens} tokens, {measure.turns} turns"
        raise ConfigError(found, f"2 to {LONGEST} tokens, at least 1 turn", "mend the value")
    if isinstance(deployment, Embedded) and max(measure.batches) > deployment.max_batch:
        found = f"measure.batches: {max(measure.batches)} is more than deployment.max_batch={deployment.max_batch}"
        raise ConfigError(found, "batches that run at once", "raise deployment.max_batch")
    if config.masks is None and not isinstance(deployment, Embedded):
        raise ConfigError(
            "masks: a server does not say what its own masks cost",
            "mask times that can be seen",
            "give masks=FOLDER of a mask benchmark or a run, or deployment=embedded",
        )
