"""Brings processors into a server: a bundle once a process, and with each request a short string that names it."""

import base64
import inspect
import json
import pickle
from collections.abc import Iterable
from typing import cast, get_args

import msgspec

from harness.deployments.inside import bootstrap
from harness.deployments.inside.order import Order
from harness.deployments.inside.telemetry import KEY
from harness.deployments.sglang.backend import SGLangBackend
from harness.deployments.sglang.bundle import Bundle, bundle
from harness.deployments.sglang.faults import BackendError, RejectedError
from harness.deployments.sglang.values import ServerProcessor
from harness.errors import DeploymentError
from harness.method import AsyncProcessor, Method, Processor
from harness.request import FailureKind, Request, Sampling
from harness.vocabulary import Vocabulary


class NotThere(Exception):  # noqa: N818 - the server was started anew, or another run's bundle took the place
    """The bundle is not installed in the process that got the request."""


class Courier:
    """Ships the code of processors. All requests carry the same string, so that the server hands all their rows over
    in one call; what differs travels as parameters. `processes` is the server's number of data-parallel copies."""

    KIND = bootstrap.FAILED

    def __init__(self, vocabulary: Vocabulary, processes: int) -> None:
        self._vocabulary = vocabulary
        self._processes = processes
        self._own: tuple[str, ...] = ()
        self._bundle: Bundle | None = None
        self._code = ""

    @staticmethod
    def failure_kind(server_kind: str) -> FailureKind:
        """The failure that the server's error kind tells of."""
        kind = server_kind.removeprefix(Courier.KIND)
        return cast(FailureKind, kind) if kind in get_args(FailureKind) else "deployment"

    def prepare(self, methods: Iterable[Method]) -> None:
        """Have the modules of all `methods` in one bundle. Raises `ConfigError` for a module that is not found."""
        modules = {module for method in methods if (module := _module(method))}
        if self._bundle is None or not modules <= set(self._own):
            self._own = tuple(sorted(modules | set(self._own)))
            self._bundle = bundle(self._own, self._vocabulary)
            self._code = _code(self._bundle.key)

    def processor(self, request: Request) -> ServerProcessor:
        """What `request` carries. Raises `ConfigError`."""
        assert isinstance(request.method, Processor | AsyncProcessor), "no other method runs in the server"
        assert request.constraint is not None, "a free request needs no processor"
        self.prepare([request.method])
        order = Order(request.method, request.constraint)
        return ServerProcessor(self._code, {"order": msgspec.json.encode(order).decode()})

    async def engine(self, backend: SGLangBackend, name: str) -> dict[str, str]:
        """What the server's process says of an engine: its `python`, and `version` or what is `missing`. Raises
        `BackendError`."""
        asked = ServerProcessor(self._code, {"about": name})
        answer = await backend.agenerate((1, 2), sampling=Sampling(1), processor=asked)
        said: dict[str, str] = answer.meta[KEY][0]
        return said

    def check_there(self, error: RejectedError) -> None:
        """Raises `NotThere` where `error` says that the bundle is not installed."""
        if error.server_kind == bootstrap.MISSING:
            raise NotThere

    async def deliver(self, backend: SGLangBackend) -> None:
        """Install the bundle in every copy of the server. Raises `DeploymentError` where it cannot be."""
        assert self._bundle is not None, "nothing asked for a processor"
        install = ServerProcessor(self._code, {"install": base64.b64encode(self._bundle.data).decode()})
        for process in range(self._processes):
            try:
                routed = process if self._processes > 1 else None
                await backend.agenerate((1, 2), sampling=Sampling(1), processor=install, data_parallel_rank=routed)
            except BackendError as error:
                raise DeploymentError(
                    f"processors cannot be brought into the server: {error}",
                    "a server started with --enable-custom-logit-processor, with msgspec, numpy and the engine's "
                    "library in its environment",
                    "start it so, or drop the arms that use processors",
                ) from error


def _module(method: Method) -> str:
    """The user's own module that a method names; empty where there is none. The harness's own go along anyway."""
    if not isinstance(method, Processor | AsyncProcessor):
        return ""
    named = method.call or (method.engine if ":" in method.engine else "")
    module = named.partition(":")[0]
    return "" if module.startswith("harness.") else module


def _code(key: str) -> str:
    """The string that the server unpickles: source that is executed there, so that it is the same for every version of
    Python. (Processors are run by the server as they are: never enable them on one that others can reach.)"""
    source = inspect.getsource(bootstrap)
    expression = f"(lambda space: (exec({source!r}, space), space['door']({key!r}))[1])({{'__name__': 'harness_door'}})"
    return json.dumps({"callable": pickle.dumps(_Evaluated(expression), protocol=4).hex()})


class _Evaluated:
    """Unpickles as the value of an expression."""

    def __init__(self, expression: str) -> None:
        self._expression = expression

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return eval, (self._expression,)
