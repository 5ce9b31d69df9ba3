"""What each command does, in the order it does it."""

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import ConfigError

if TYPE_CHECKING:
    from harness.config import Config
    from harness.metrics.targets import Targets

FOLDER, GOODPUT = "folder=", "goodput."
COMPARISONS = Path("results/compare")
"""Where comparisons go that are given no folder."""
FAILED = 3
"""Exit status of a run in which requests failed (`allow_failures=true` makes it 0)."""


def run(arguments: Sequence[str]) -> int:
    """`run [overrides]`: one run, or with `-m` a sweep and one report over it."""
    from harness.config import with_hydra

    return with_hydra(_run_one, list(arguments))


def _run_one(config: "Config") -> int:
    from harness.config import plan_of
    from harness.experiment import run as run_plan

    plan = plan_of(config)
    _say(f"{plan.task.name}: {len(plan.task.rows.rows)} examples, arms {', '.join(config.arms)} -> {plan.folder}")
    folder = run_plan(plan)
    from harness.report.write import terminal_table, write_reports

    paths = write_reports(folder)
    print(terminal_table(paths.summary))
    print(f"report: {paths.html}")
    failed = sum(counts.failed for counts in paths.summary.counts.values())
    if failed and not config.allow_failures:
        _say(f"{failed} requests failed: see the report (allow_failures=true accepts that)")
        return FAILED
    return 0


def finish_sweep(folder: Path, allow_failures: bool) -> int:
    """After a sweep: one report over all its runs; returns the exit status of their failures."""
    from harness.record import read_slim
    from harness.report.write import write_combined

    runs = sorted(path.parent for path in folder.glob("*/records.jsonl"))
    if runs:
        print(f"report: {write_combined(runs, folder)}", flush=True)
    failed = any(record.outcome == "failed" for run in runs for record in read_slim(run / "records.jsonl"))
    return FAILED if failed and not allow_failures else 0


def report(arguments: Sequence[str]) -> int:
    """`report RUN [RUN...] [goodput.ttft_ms=200 ...]`: make the reports of runs again from their records."""
    from harness.report.write import terminal_table, write_reports

    names, targets = _targets(arguments)
    for folder in _folders(names, 1):
        paths = write_reports(folder, targets)
        print(terminal_table(paths.summary))
        print(f"report: {paths.html}")
    return 0


def compare(arguments: Sequence[str]) -> int:
    """`compare RUN RUN [RUN...] [folder=...] [goodput.ttft_ms=200 ...]`: pair runs by example."""
    from harness.report.compare import write_comparison
    from harness.report.write import terminal_table

    names, targets = _targets(arguments)
    named = [name for name in names if name.startswith(FOLDER)]
    out = Path(named[-1].removeprefix(FOLDER)) if named else COMPARISONS / f"{datetime.now():%Y-%m-%d_%H-%M-%S}"
    made = write_comparison(_folders([name for name in names if name not in named], 2), out.resolve(), targets)
    print(terminal_table(made.summary))
    print(f"report: {made.html}")
    return 0


def preflight(arguments: Sequence[str]) -> int:
    """`preflight [overrides]`: only the checks that a run makes first, as a table. Exit status 2 where one refuses."""
    from harness.config import with_hydra

    return with_hydra(_check_one, list(arguments))


def _check_one(config: "Config") -> int:
    from harness.config import REFUSED, plan_of
    from harness.experiment import check
    from harness.preflight import table

    outcome = check(plan_of(config))
    print(table(outcome.verdicts))
    return REFUSED if outcome.refused else 0


def masks(arguments: Sequence[str]) -> int:
    """`masks [overrides]`: the mask benchmark, without a model."""
    from harness.config import composed
    from harness.mask_bench.bench import run as run_bench
    from harness.mask_bench.config import decode
    from harness.mask_bench.report import write

    config = decode(composed("masks", arguments))
    _say(f"masks of {', '.join(config.engines)} -> {config.path}")
    report = write(run_bench(config))
    print(report.table)
    print(f"report: {report.html}")
    return 0


def capacity(arguments: Sequence[str]) -> int:
    """`capacity [overrides]`: throughput over batch sizes from mask and forward times, given or measured."""
    from harness.capacity.config import decode
    from harness.capacity.report import terminal
    from harness.capacity.run import run as run_capacity
    from harness.capacity.run import write
    from harness.config import composed

    config = decode(composed("capacity", arguments))
    found = run_capacity(config)
    print(terminal(found.capacities, found.checks, found.costs, found.sweep))
    print(f"report: {write(found)}")
    return 0


def usage(command: str) -> str:
    """What a command takes whose help is not Hydra's own."""
    from harness.config import CONFIGS

    match command:
        case "masks" | "capacity":
            return (CONFIGS / f"{command}.yaml").read_text(encoding="utf-8")
        case "report":
            return str(report.__doc__)
        case _:
            return str(compare.__doc__)


def _targets(arguments: Sequence[str]) -> tuple[list[str], "Targets | None"]:
    """The arguments that are no targets of goodput, and the targets that the others name; None where there are none."""
    overrides = [argument for argument in arguments if argument.startswith(GOODPUT)]
    if not overrides:
        return list(arguments), None
    from harness.config import targets

    return [argument for argument in arguments if argument not in overrides], targets(overrides)


def _folders(arguments: Sequence[str], least: int) -> list[Path]:
    folders = [Path(argument).resolve() for argument in arguments]
    if len(folders) < least:
        raise ConfigError(f"run folders: {len(folders)} given", f"at least {least}", "name them")
    if missing := next((folder for folder in folders if not (folder / "records.jsonl").is_file()), None):
        raise ConfigError(f"{missing}: no records.jsonl", "the folder of a run", "mend the path")
    return folders


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
