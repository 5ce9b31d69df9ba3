"""What `python -m harness masks` takes: configs/masks.yaml as a frozen object."""

from pathlib import Path
from typing import Annotated

import msgspec

from harness.decoding import decoded
from harness.errors import ConfigError
from harness.masks import check_name

Limit = Annotated[float, msgspec.Meta(gt=0)]


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one engine may take for one schema: processor seconds, seconds on the clock, MiB of resident memory in
    all (its tables included)."""

    cpu_s: Limit = 30.0
    wall_s: Limit = 600.0
    memory_mib: Limit = 4096.0


class MasksConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`engine`: names or import paths. `data`: files or folders in MaskBench's format, or `pathologies`, the set that
    ships with the harness. `first`: only so many schemas of each. `samples`: disputed tokens that are judged for each
    schema and ordered pair of engines; 0 judges none."""

    engine: str | tuple[str, ...]
    data: str | tuple[str, ...]
    tokenizer: str
    folder: str
    seed: int = 0
    first: Annotated[int, msgspec.Meta(ge=1)] | None = None
    samples: Annotated[int, msgspec.Meta(ge=0)] = 2
    limits: Limits = Limits()

    @property
    def engines(self) -> tuple[str, ...]:
        """The engines, in order."""
        return (self.engine,) if isinstance(self.engine, str) else self.engine

    @property
    def sources(self) -> tuple[str, ...]:
        """The data, in order."""
        return (self.data,) if isinstance(self.data, str) else self.data

    @property
    def path(self) -> Path:
        """The folder of the run."""
        return Path(self.folder).resolve()


def decode(plain: object) -> MasksConfig:
    """The config of plain values. Raises `ConfigError`."""
    config = decoded(plain, MasksConfig, "configs/masks.yaml")
    names = config.engines
    if not names or len(set(names)) < len(names):
        raise ConfigError(f"engine: {list(names)}", "engines, each once", "e.g. 'engine=[llguidance,xgrammar]'")
    for name in names:
        check_name(name)
    return config
