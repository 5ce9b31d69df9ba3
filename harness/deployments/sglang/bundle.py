"""The sources that a server needs to run processors, packed into one zip file.

They are found by following imports from the code that runs in the server, the mask engines, and the user's own module.
What is installed (in site-packages, or with Python) is not shipped: the server must have it.
"""

import ast
import hashlib
import io
import sys
import sysconfig
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from harness.dataset import PROJECT
from harness.deployments.inside.faulty import FAULTY
from harness.deployments.inside.runtime_names import RUNTIME, VOCABULARY, WORKER
from harness.errors import ConfigError
from harness.masks import ENGINES
from harness.vocabulary import Vocabulary

_WHENCE = (1980, 1, 1, 0, 0, 0)
"""The date of every file in the zip, so that equal content is an equal bundle."""


class Bundle(msgspec.Struct, frozen=True):
    """`key` names the content (SHA-256, 16 hex digits), `data` is the zip file."""

    key: str
    data: bytes


def bundle(own: Sequence[str], vocabulary: Vocabulary) -> Bundle:
    """Everything that a server needs for the shipped engines and for the user's modules `own`. Raises `ConfigError`
    for a module that is not found."""
    roots = [RUNTIME, WORKER, FAULTY, *(f"harness.masks.{engine}" for engine in ENGINES), *own]
    files = {file: path.read_bytes() for file, path in sorted(_closure(roots, tuple(own)).items())}
    packages = {str(Path(file).parent / "__init__.py") for file in files if "/" in file}
    files |= {package: b"" for package in _with_parents(packages) if package not in files}
    files[VOCABULARY] = msgspec.msgpack.encode(vocabulary)
    data = _zip(files)
    return Bundle(hashlib.sha256(data).hexdigest()[:16], data)


def _with_parents(packages: Iterable[str]) -> set[str]:
    found = set(packages)
    for package in packages:
        found |= {str(parent / "__init__.py") for parent in Path(package).parent.parents if parent != Path()}
    return found


def _zip(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name, _WHENCE), files[name], zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _closure(roots: Sequence[str], wanted: tuple[str, ...]) -> dict[str, Path]:
    """The files of `roots` and of all that they import, by their names in the zip. Those of `wanted` may also be
    installed; then they are not shipped."""
    found: dict[str, Path] = {}
    todo, seen = list(roots), set[str]()
    while todo:
        if (module := todo.pop()) in seen:
            continue
        seen.add(module)
        if (path := _source(module)) is None:
            if module in wanted and not _installed(module):
                fix = "run from the folder that holds it, or put it on the Python path"
                raise ConfigError(f"call: no module {module!r}", "a module of yours, or an installed one", fix)
            continue
        is_package = path.name == "__init__.py"
        found[module.replace(".", "/") + ("/__init__.py" if is_package else ".py")] = path
        todo += _imports(path, module if is_package else module.rpartition(".")[0])
        todo += [module.rpartition(".")[0]] if "." in module else []
    return found


def _imports(path: Path, package: str) -> Iterator[str]:
    """The modules that a file may import, wherever in it that stands."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                above = package.split(".")[: len(package.split(".")) - level + 1] if level else []
                base = ".".join([*above, *([module] if module else [])])
                yield base
                yield from (f"{base}.{alias.name}" for alias in names)


@lru_cache(maxsize=4096)
def _source(module: str) -> Path | None:
    """The file of a module that is not installed; None where there is none."""
    for folder in _folders():
        place = folder.joinpath(*module.split("."))
        for candidate in (place / "__init__.py", place.with_name(place.name + ".py")):
            if candidate.is_file():
                return candidate
    return None


def _folders() -> list[Path]:
    """Where sources are looked for that are shipped: the import path without what is installed."""
    installed = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    given = [PROJECT, *(Path(entry) for entry in sys.path), Path.cwd()]
    return [
        folder
        for folder in dict.fromkeys(each.resolve() for each in given)
        if folder.is_dir() and not any(folder == place or place in folder.parents for place in installed)
    ]


def _installed(module: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False
