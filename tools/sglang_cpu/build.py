"""Builds `.venv-sglang/`: the environment in which a real SGLang server runs on the CPU.

SGLang pins outlines 0.1.11 and others that the harness cannot share, so the server has an environment of its own, with
the exact versions of `constraints-sglang-cpu.txt`. Building takes about 80 seconds and 3 GB; a stamp makes the next
call return at once. The environment is of the interpreter that runs this: CPython 3.11, which those versions are for.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".venv-sglang"
VERSIONS = ROOT / "constraints-sglang-cpu.txt"
STAND_INS = Path(__file__).resolve().parent / "stand_ins"
STAMP = ENVIRONMENT / "built-from"

CHECK = """
import torch
assert torch.version.cuda is None, f"torch {torch.__version__} is a CUDA build: make pip find the CPU build of it first"
import sglang.srt.entrypoints.http_server
from importlib.metadata import version
print("sglang-cpu: sglang", version("sglang"), "imports beside torch", torch.__version__)
"""


class BuildError(Exception):
    """A step that failed, and what to do about it."""


def main() -> int:
    wanted = fingerprint()
    if STAMP.exists() and STAMP.read_text() == wanted:
        print(f"sglang-cpu: {ENVIRONMENT.name} is up to date")
        return 0
    try:
        build()
    except BuildError as error:
        print(f"\nsglang-cpu: {error}", file=sys.stderr)
        return 1
    STAMP.write_text(wanted)
    return 0


def fingerprint() -> str:
    """Changes with anything that the environment is made from; the folder counts too, since neither an environment nor
    the path to the stand-ins survives a move."""
    digest = hashlib.sha256(f"{ROOT} {sys.version}".encode())
    for source in (VERSIONS, Path(__file__), *sorted(STAND_INS.rglob("*.py"))):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def build() -> None:
    if ENVIRONMENT.exists():
        shutil.rmtree(ENVIRONMENT)
    step("make the environment", [sys.executable, "-m", "venv", str(ENVIRONMENT)], "install Python's venv module")
    python = str(ENVIRONMENT / "bin" / "python")
    install = [python, "-m", "pip", "install", "-qq", "--no-deps", "--only-binary", ":all:", "-r", str(VERSIONS)]
    step(
        "install the packages", install, "this needs Linux on x86_64, CPython 3.11 and a package index that pip reaches"
    )
    link_stand_ins(python)
    step("import the server", [python, "-W", "ignore", "-c", CHECK], "the last line above says what is missing")


def link_stand_ins(python: str) -> None:
    """Put the stand-ins on the environment's path."""
    ask = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.check_output(ask, text=True).strip())
    (packages / "sglang_cpu_stand_ins.pth").write_text(f"{STAND_INS}\n")


def step(what: str, command: list[str], advice: str) -> None:
    print(f"sglang-cpu: {what}", flush=True)
    code = subprocess.run(command, env=os.environ | {"SGLANG_USE_CPU_ENGINE": "1"}).returncode
    if code != 0:
        raise BuildError(f"could not {what} (exit code {code}); to mend: {advice}")


if __name__ == "__main__":
    sys.exit(main())
