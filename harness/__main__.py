"""The command line: `python -m harness run|report|compare|preflight|masks|capacity`.

Heavy libraries load only when used.
"""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

EPILOG = """
examples:
  python -m harness run task=intents
  python -m harness run task=extraction 'method=[none,native,async]' deployment.model=/models/mine
  python -m harness run -m task=intents,extraction load.concurrency=1,8
  python -m harness run folder=results/runs/OLD ...      go on with a run that was stopped
  python -m harness report results/runs/OLD              make its reports again
  python -m harness report results/runs/OLD goodput.ttft_ms=200 goodput.tpot_ms=50
  python -m harness compare results/runs/A results/runs/B       into results/compare/, or folder=...
  python -m harness preflight deployment=sglang deployment.url=http://localhost:30000
  python -m harness masks 'engine=[llguidance,xgrammar]' data=maskbench/data
  python -m harness capacity masks=results/masks/RUN 'forward={1: 8.5, 32: 11.0}'
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status: 0 well, 2 a set-up that is refused, 3 requests failed, 130 stopped."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parsed, rest = _parser().parse_known_args(given[:1])
    from harness.commands import capacity, compare, masks, preflight, report, run, usage
    from harness.errors import HarnessError

    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))  # a job that is told to end, as Ctrl-C
    if given[1:2] in (["-h"], ["--help"]) and parsed.command not in ("run", "preflight"):  # theirs is Hydra's
        print(usage(parsed.command))
        return 0
    commands = {"run": run, "report": report, "compare": compare, "preflight": preflight}
    command = (commands | {"masks": masks, "capacity": capacity})[parsed.command]
    try:
        return command([*rest, *given[1:]])
    except HarnessError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; every record so far is kept", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m harness",
        description="Compare ways to constrain a language model's output.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = ["run", "report", "compare", "preflight", "masks", "capacity"]
    parser.add_argument("command", choices=commands, help="what to do")
    return parser


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    sys.exit(main())
