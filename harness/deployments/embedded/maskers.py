"""The methods at work on this deployment: one masker an arm, made when the arm is first used and kept."""

import threading

from harness.method import AsyncProcessor, Method, Native, Processor, Unconstrained
from harness.processors.masker import Masker
from harness.vocabulary import Vocabulary


class Maskers:
    """Makes and keeps maskers. Making one may start workers and takes seconds, so no decoding thread waits for it."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._made: dict[Method, Masker] = {}
        self._making = threading.Lock()

    def made(self, method: Method) -> Masker | None:
        """The masker of `method`, if there is one already."""
        return self._made.get(method)

    def make(self, method: Method) -> Masker | None:
        """The masker of `method`; None for `none`. Raises `ConfigError` where its engine or code cannot be loaded."""
        with self._making:
            if method not in self._made and (masker := _masker(method, self._vocabulary)) is not None:
                self._made[method] = masker
            return self._made.get(method)

    def stop(self) -> None:
        """End all workers and threads."""
        with self._making:
            for masker in self._made.values():
                masker.stop()
            self._made.clear()


def _masker(method: Method, vocabulary: Vocabulary) -> Masker | None:
    match method:
        case Unconstrained():
            return None
        case Native(engine=name):
            from harness.deployments.embedded.native import NativeMasker
            from harness.masks import engine

            return NativeMasker(engine(name), vocabulary)
        case Processor() | AsyncProcessor():
            from harness.processors import masker_for

            return masker_for(method, vocabulary)
