"""What `python -m harness masks` takes: configs/masks.yaml as a frozen object."""

from pathlib import Path

import msgspec

from harness.errors import ConfigError


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one engine may take for one schema: processor seconds, seconds on the clock, MiB of resident memory in
    all (its tables included)."""

    cpu_s: float = 30.0
    wall_s: float = 600.0
    memory_mib: float = 4096.0


class MasksConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`engine`: names or import paths. `data`: files or folders in MaskBench's format, or `pathologies`, the set that
    ships with the harness. `first`: only so many schemas of each. `samples`: disputed tokens that are judged for each
    schema and ordered pair of engines; 0 judges none."""

    engine: str | tuple[str, ...]
    data: str | tuple[str, ...]
    tokenizer: str
    folder: str
    seed: int = 0
    first: int | None = None
    samples: int = 2
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
    try:
        config = msgspec.convert(plain, MasksConfig, strict=True)
    except msgspec.ValidationError as error:
        raise ConfigError(f"masks: {error}", "see configs/masks.yaml", "mend this key") from None
    names = config.engines
    if not names or len(set(names)) < len(names):
        raise ConfigError(f"engine: {list(names)}", "engines, each once", "e.g. 'engine=[llguidance,xgrammar]'")
    if config.samples < 0 or min(config.limits.cpu_s, config.limits.wall_s, config.limits.memory_mib) <= 0:
        raise ConfigError("masks: a limit or samples is not positive", "limits above 0, samples of at least 0", "mend")
    return config
