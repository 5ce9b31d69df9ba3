"""Errors of the client as failures of one request."""

from harness.deployments.sglang.courier import Courier
from harness.deployments.sglang.faults import BackendError, RejectedError, TimedOutError
from harness.request import FailureKind


def failure_of(error: BackendError) -> tuple[FailureKind, str]:
    """Which kind of failure it is, and its message."""
    match error:
        case RejectedError(server_kind=kind) if kind.startswith(Courier.KIND):
            return Courier.failure_kind(kind), error.message
        case RejectedError() if "Failed to compile" in error.message or "rammar" in error.message:
            return "unsupported", error.message
        case RejectedError() if "longer than the model's context length" in error.message:
            return "too_long", error.message
        case RejectedError():
            return "rejected", str(error)
        case TimedOutError():
            return "timeout", str(error)
        case _:
            return "deployment", str(error)
