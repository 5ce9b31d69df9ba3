"""Where the model runs, as the rest of the harness sees it."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, runtime_checkable

import msgspec

from harness.request import Completion, Failure, Request, Scores


class DeploymentInfo(msgspec.Struct, frozen=True):
    """What is known about a deployment; it goes into the manifest as it is, so it holds no secret.

    `fingerprint` names the weights and tokenizer: a run is only resumed, and two runs are only compared as the same
    model, where it is equal. `tokenizer` is the folder or hub name that prompts are made with. `stop_ids` are the
    tokens that end an answer. `width` is the number of logits, and `context` the longest sequence, in tokens.
    """

    name: str
    model: str
    fingerprint: str
    tokenizer: str
    width: int
    context: int
    stop_ids: tuple[int, ...]
    dtype: str
    device: str
    details: dict[str, Any]


class Deployment(Protocol):
    """A running model. Every call may be made many times at once; the deployment batches them."""

    @property
    def info(self) -> DeploymentInfo: ...

    async def generate(self, request: Request) -> Completion | Failure:
        """Answer one request. What is wrong with the request is a `Failure`; only a broken set-up raises
        (`harness.errors.DeploymentError`). Cancelling the call frees what the request held."""

    async def score(self, prompt_ids: Sequence[int], continuations_ids: Sequence[Sequence[int]]) -> tuple[Scores, ...]:
        """The unmasked log-probabilities of each continuation of one prompt, joined as ids. Raises `ValueError` for an
        empty continuation and `DeploymentError` where a value is missing."""

    async def tokenize(self, text: str) -> tuple[int, ...]:
        """The ids of `text` alone: no begin token, and special tokens in it stay text."""


@runtime_checkable
class Explaining(Protocol):
    """A deployment whose answers do not say all that a trace holds, and that can ask for the rest afterwards."""

    async def explain(self, completion: Completion) -> Completion:
        """The completion with its trace as whole as it can be made, by requests of its own: call it outside the timed
        window. Raises `DeploymentError`."""


@runtime_checkable
class Restarting(Protocol):
    """A deployment that can come back after it died."""

    @property
    def restarts(self) -> int:
        """How often it has come back. Whatever it held (caches, workers, compiled constraints) was lost each time."""


class DeploymentFactory(Protocol):
    """A frozen deployment config that can be started; entering it yields the running deployment."""

    def start(self) -> AbstractAsyncContextManager[Deployment]: ...
