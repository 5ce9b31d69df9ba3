"""The two protocols that users write, and how a factory of theirs is found.

    def my_processor(inputs: list[int], logits: torch.Tensor) -> torch.Tensor: ...

    async def my_async_processor(inputs: list[int]) -> AsyncGenerator[torch.Tensor, torch.Tensor]:
        mask = ...                  # runs while the model runs
        logits = yield
        yield logits.masked_fill(~mask, -math.inf)

`inputs` are the tokens generated so far in this section (an empty list at its start), `logits` the unmasked ones of the
next token, float32, shape `(width,)`, on the CPU where a worker runs the processor, and a copy that may be changed. New
logits have the same type and shape, no NaN and no +inf, and forbid a token by -inf (or float32's lowest number).

A factory `(constraint, vocabulary) -> processor` is called once a request, so a processor may keep the state of its
sequence. Where its worker had to be replaced it is called again, and the first `inputs` are then not empty. An async
processor is called anew for each token: it yields once bare and once the new logits, and ends; while it awaits, other
sequences go on. `timeout_s` of the method bounds one call of a factory, of a processor, and of either half of an async
one.
"""

import importlib
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from harness.constraint import Constraint
from harness.errors import ConfigError
from harness.vocabulary import Vocabulary

if TYPE_CHECKING:
    import torch

    LogitsProcessor = Callable[[list[int], torch.Tensor], torch.Tensor]
    AsyncLogitsProcessor = Callable[[list[int]], AsyncGenerator[torch.Tensor | None, torch.Tensor]]
    ProcessorFactory = Callable[[Constraint, Vocabulary], LogitsProcessor]
    AsyncProcessorFactory = Callable[[Constraint, Vocabulary], AsyncLogitsProcessor]

Factory = Callable[[Constraint, Vocabulary], Any]


def load_factory(call: str) -> Factory:
    """The factory that `call` (`package.module:name`) names; the working folder is searched too.

    Raises `ConfigError`."""
    module_name, _, name = call.partition(":")
    if not module_name or not name:
        raise ConfigError(f"call: {call!r}", "package.module:factory", "name the module and the factory in it")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        fix = "install it, or run from the folder that holds it"
        raise ConfigError(f"call: cannot import {module_name!r}: {error}", "a module that imports", fix) from error
    factory = getattr(module, name, None)
    if not callable(factory):
        found = f"call: {module_name!r} has no callable {name!r}"
        raise ConfigError(found, "a factory (constraint, vocabulary) -> processor", "mend the name")
    return cast(Factory, factory)
