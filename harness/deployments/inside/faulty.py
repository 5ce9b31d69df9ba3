"""A processor that always fails: the canary for whether a fault stays one request's."""

from typing import Any, NoReturn

FAULTY = "harness.deployments.inside.faulty"
"""This module's name, as `method.call` takes it."""


def raises(constraint: Any, vocabulary: Any) -> Any:
    """A factory of processors that raise."""

    def processor(inputs: list[int], logits: Any) -> NoReturn:
        raise RuntimeError("preflight: a processor that raises")

    return processor
