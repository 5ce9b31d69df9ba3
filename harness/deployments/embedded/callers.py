"""Handing a result to a caller who waits in another thread and may have gone away."""

from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def hand_over(future: "Future[T]", value: T) -> None:
    """Give `value` to whoever waits."""
    if future.set_running_or_notify_cancel():
        future.set_result(value)


def give_up(future: "Future[T]", error: Exception) -> None:
    """Raise `error` for whoever waits."""
    if future.set_running_or_notify_cancel():
        future.set_exception(error)
