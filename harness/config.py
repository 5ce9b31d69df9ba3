"""From Hydra to frozen objects: the only module that knows Hydra.

The composed config becomes plain values at once, then a `Config`, decoded strictly: an unknown key or a wrong type is a
`ConfigError` that names its path.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hydra
import msgspec
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from harness.dataset import PROJECT
from harness.decoding import decoded
from harness.deployments.configs import DeploymentConfig
from harness.errors import ConfigError, HarnessError
from harness.experiment import Plan
from harness.load import Load
from harness.masks import check_name
from harness.method import AsyncProcessor, Method, Native, Processor, Unconstrained, arm_name
from harness.metrics.targets import NO_TARGETS, Targets
from harness.task import TaskConfig, resolve

CONFIGS = PROJECT / "configs"
REFUSED = 2
"""Exit status of a set-up that is refused."""
REFUSAL = "refused.txt"
"""In the folder of a refused run: why."""


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A run as the config files write it; see configs/config.yaml. `method` holds an arm under each key."""

    task: TaskConfig
    method: dict[str, Method]
    deployment: DeploymentConfig
    load: Load
    folder: str
    seed: int = 0
    block: int = 16
    warmup: int = 2
    allow_failures: bool = False
    goodput: Targets = NO_TARGETS

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of the arms in order."""
        return tuple(arm_name(method) for method in self.method.values())


def decode(plain: Any) -> Config:
    """The config of plain values. Raises `ConfigError` naming the path of what is wrong."""
    config = decoded(plain, Config, "configs/")
    _check(config)
    return config


class _Reporting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What may be said anew where reports are made again."""

    goodput: Targets


def targets(overrides: Sequence[str]) -> Targets:
    """The targets of overrides like `goodput.ttft_ms=200`. Raises `ConfigError`."""
    return decoded(plain(OmegaConf.from_dotlist(list(overrides))), _Reporting, "configs/config.yaml").goodput


def plan_of(config: Config) -> Plan:
    """Everything read and checked that needs no model."""
    return Plan(
        task=resolve(config.task, config.seed),
        methods=tuple(config.method.values()),
        deployment=config.deployment,
        load=config.load,
        seed=config.seed,
        block=config.block,
        warmup=config.warmup,
        folder=Path(config.folder).resolve(),
        config=msgspec.to_builtins(config),
    )


def with_hydra(job: Callable[[Config], int], arguments: list[str]) -> int:
    """Run `job` as Hydra says: once, or once for every point of a sweep (`-m`), here or wherever a launcher sends it. A
    point of a sweep that is refused does not stop the others. Returns the worst exit status."""
    statuses = [0]
    sys.argv = ["python -m harness run", *arguments]
    os.environ["HYDRA_FULL_ERROR"] = "1"  # raise what is wrong; else Hydra prints it and exits with 1
    with _composing("the keys and files of configs/"):
        hydra.main(version_base="1.3", config_path=str(CONFIGS), config_name="config")(
            lambda composed: statuses.append(_point(job, composed))
        )()
    return max(*statuses, CombineReports.status)


def _point(job: Callable[[Config], int], composed: DictConfig) -> int:
    try:
        return job(decode(plain(composed)))
    except HarnessError as error:
        print(f"error: {error}", file=sys.stderr)
        (Path(HydraConfig.get().runtime.output_dir) / REFUSAL).write_text(f"{error}\n", encoding="utf-8")
        return REFUSED


def composed(name: str, arguments: Sequence[str]) -> Any:
    """The plain values of configs/`name`.yaml with overrides, for commands that have no task. Raises `ConfigError`."""
    with _composing(f"the keys of configs/{name}.yaml"), hydra.initialize_config_dir(str(CONFIGS), version_base="1.3"):
        return plain(hydra.compose(name, list(arguments)))


@contextmanager
def _composing(wanted: str) -> Iterator[None]:
    """What Hydra does not take, as a `ConfigError`."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        found = " ".join(str(error).partition("Config search path:")[0].split())
        raise ConfigError(f"config: {found}", wanted, "mend it; --help lists them") from None


class CombineReports(Callback):
    """After a sweep: one report over all its runs. `status` is the worst exit status that the folders of its points
    tell of, which holds for points that ran in another process too."""

    status = 0

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        from harness.commands import finish_sweep

        folder = Path(config.hydra.sweep.dir).resolve()
        refused = any(folder.glob(f"*/{REFUSAL}"))
        CombineReports.status = max(REFUSED if refused else 0, finish_sweep(folder, bool(config.allow_failures)))


def plain(composed: DictConfig) -> Any:
    """The composed config as plain values. Raises `ConfigError` for a missing value or an interpolation that leads
    nowhere."""
    try:
        return OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        found = str(error).splitlines()[0]
        fix = "give the key a value, or write a literal ${ as \\${"
        raise ConfigError(f"config: {found}", "keys that have values", fix) from None


def _check(config: Config) -> None:
    names = config.arms
    if not names:
        raise ConfigError("method: none given", "at least one", "e.g. 'method=[none,native]'")
    if doubled := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"method: two arms are {doubled!r}", "arms that differ", "drop one or give it another engine")
    for method in config.method.values():
        _check_engine(method)
    if config.block < 1 or config.warmup < 0:
        found = f"block={config.block}, warmup={config.warmup}"
        raise ConfigError(found, "block of at least 1, warmup of at least 0", "mend them")


def _check_engine(method: Method) -> None:
    """Only the name: whether its library is there is seen where it runs."""
    match method:
        case Unconstrained():
            return
        case Native(engine=engine):
            check_name(engine)
        case Processor(engine=engine, call=call) | AsyncProcessor(engine=engine, call=call):
            if call is None:
                check_name(engine)
