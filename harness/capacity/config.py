"""What `python -m harness capacity` takes: configs/capacity.yaml as a frozen object."""

import msgspec

from harness.capacity.model import BATCHES, Costs
from harness.errors import ConfigError


class CapacityConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`masks`: the folder of a benchmark of masks or of a run; `forward`: batch size -> milliseconds."""

    masks: str
    forward: dict[int, float]
    batches: tuple[int, ...] = BATCHES
    costs: Costs = Costs()
    seed: int = 0


def decode(plain: object) -> CapacityConfig:
    """The config of plain values. Raises `ConfigError`."""
    try:
        config = msgspec.convert(plain, CapacityConfig, strict=True)
    except msgspec.ValidationError as error:
        raise ConfigError(f"capacity: {error}", "see configs/capacity.yaml", "mend this key") from None
    if not config.batches or min(config.batches) < 1 or config.costs.workers < 1:
        raise ConfigError("capacity: a batch or workers below 1", "1 or more", "mend it")
    return config
