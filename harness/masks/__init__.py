"""Mask engines, each behind the protocols of `harness.mask`, each library imported by the one file that wraps it."""

import importlib
import sys
from pathlib import Path
from typing import cast

from harness.errors import ConfigError
from harness.mask import MaskEngine

ENGINES = ("lm_format_enforcer", "outlines", "xgrammar", "llguidance", "reference")
"""The engines that ship with the harness."""


def engine(name: str) -> MaskEngine:
    """The engine called `name`, or the user's own by import path (`package.module:ENGINE`). Raises `ConfigError`."""
    check_name(name)
    if name in ENGINES:
        return _load(f"harness.masks.{name}", "ENGINE")
    module, _, attribute = name.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    return _load(module, attribute)


def check_name(name: str) -> None:
    """Raises `ConfigError` for what is neither a shipped engine nor an import path. Imports nothing."""
    if name not in ENGINES and ":" not in name:
        wanted = f"one of {', '.join(ENGINES)}, or your own as package.module:ENGINE"
        raise ConfigError(f"engine: {name!r} is not known", wanted, "mend the name")


def _load(module: str, attribute: str) -> MaskEngine:
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ImportError as error:
        raise ConfigError(f"engine: cannot import {module!r}: {error}", "a module that imports", "install it") from None
    if not hasattr(found, "compiler"):
        raise ConfigError(f"engine: {module!r} has no engine {attribute!r}", "a MaskEngine", "mend the name")
    return cast(MaskEngine, found)
