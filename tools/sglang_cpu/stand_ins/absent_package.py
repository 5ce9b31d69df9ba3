"""What stands in for a package that cannot be installed without a GPU.

SGLang imports `sgl_kernel` and `torchvision` when it starts, and on the CPU calls neither. A stand-in is a package of
which every attribute and submodule can be imported, and of which every call raises: a server that does need the real
package says so, by name, instead of computing something else.
"""

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import NoReturn


class Absent:
    """An attribute of an absent package. Its own attributes are absent too; calling it raises."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> "Absent":
        if name.startswith("__"):
            raise AttributeError(f"{self._name} is a stand-in and has no {name}")
        return Absent(f"{self._name}.{name}")

    def __call__(self, *_: object, **__: object) -> NoReturn:
        raise NotImplementedError(f"{self._name} is a stand-in: the real package needs a GPU build")


class _Submodules(MetaPathFinder, Loader):
    """Finds every submodule of one absent package."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if not name.startswith(self._package + "."):
            return None
        return ModuleSpec(name, self, origin="stand-in", is_package=True)

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        _resolve_everything(module)


def stand_in(package: str) -> None:
    """Make the package that is being imported one whose every attribute and submodule resolves."""
    sys.meta_path.append(_Submodules(package))
    _resolve_everything(sys.modules[package])


def _resolve_everything(module: ModuleType) -> None:
    module.__getattr__ = Absent(module.__name__).__getattr__  # type: ignore[method-assign]
