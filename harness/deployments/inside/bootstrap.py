"""The part of a processor that travels with every request: finds the installed bundle, or installs one.

Its source is executed inside the server, where the harness is not installed, so it uses the standard library, torch and
SGLang alone. Nothing may be raised out of it: that would end the server. What goes wrong ends the requests concerned.
"""

import base64
import importlib
import os
import sys
import types
import zipimport
from collections.abc import Callable
from typing import Any

HOME = "_harness_inside"
"""The name in `sys.modules` under which the installed bundle is kept: it outlives this program's own namespace."""

FAILED = "harness:"
"""What the server's error kind begins with when one of our requests is ended; the failure's kind follows."""
MISSING = FAILED + "missing"
"""The bundle is not installed in this process."""


def door(key: str) -> Callable[[], Callable[[Any, Any], Any]]:
    """What the server unpickles and calls: it gives the processor of the bundle `key`."""
    return lambda: lambda logits, params: process(key, logits, params)


def process(key: str, logits: Any, params: Any) -> Any:
    """New logits, shape `(rows, width)`, for the rows of one step; `params[i]` are the custom parameters of row `i`."""
    try:
        for given in params:
            if "install" in given and (home(key) is None):
                install(key, base64.b64decode(given["install"]))
        found = home(key)
        if found is not None:
            return found.runtime.process(logits, params)
        end(params, MISSING, "the bundle of this processor is not installed in the server")
    except BaseException as error:  # whatever is raised out of here ends the server
        end(params, FAILED + "deployment", f"the harness failed inside the server: {type(error).__name__}: {error}")
    return logits


def end(params: Any, kind: str, message: str) -> None:
    """End the requests of all rows."""
    from sglang.srt.managers.schedule_batch import FINISH_ABORT

    for given in params:
        given["__req__"].to_finish = FINISH_ABORT(message, 400, kind)


def home(key: str) -> Any:
    """What is installed, if it is the bundle `key`."""
    found = sys.modules.get(HOME)
    return found if found is not None and found.key == key else None


def install(key: str, bundle: bytes) -> None:
    """Put the bundle, a zip file, on the import path, in front, and start its runtime. It lies in memory without a
    name, where this process's workers find it too, and goes with the process. An older bundle goes first."""
    remove()
    descriptor = os.memfd_create("harness-bundle")
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(bundle)
    path = f"/proc/{os.getpid()}/fd/{descriptor}"
    forget(path)
    sys.path.insert(0, path)
    for name in zipimport.zipimporter(path)._files:  # type: ignore[attr-defined]
        module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        sys.modules.pop(module, None)  # another version that is installed in the server
    place: Any = types.ModuleType(HOME)
    place.path, place.descriptor, place.key = path, descriptor, ""
    sys.modules[HOME] = place
    runtime = importlib.import_module("harness.deployments.inside.runtime")
    place.runtime = runtime.started(path)
    place.key = key


def remove() -> None:
    """Take the installed bundle away, with its workers and modules."""
    place = sys.modules.pop(HOME, None)
    if place is None:
        return
    if hasattr(place, "runtime"):
        place.runtime.stop()
    sys.path.remove(place.path)
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(place.path + "/"):
            del sys.modules[name]
    os.close(place.descriptor)


def forget(path: str) -> None:
    """Descriptors are used again, so another bundle may have been seen at the same path."""
    sys.path_importer_cache.pop(path, None)
    zipimport._zip_directory_cache.pop(path, None)  # type: ignore[attr-defined]
    importlib.invalidate_caches()
