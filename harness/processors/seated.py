"""What the decoding loop's side knows of one sequence."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.constraint import Constraint
from harness.processors.masker import Masked, Rewritten
from harness.request import Failure, FailureKind

if TYPE_CHECKING:
    import torch

LIVES = 3
"""How many workers may die while they hold a sequence, nobody knowing of what, before it is given up."""


@dataclass(slots=True, eq=False)
class Seated:
    """One open request. `key` names it to the worker, `row` is its row of shared memory. `told` counts the tokens that
    the worker knows; `prepared` is the number of tokens that the latest preparation asked for follows (-1: none);
    `logits` are there while new ones are awaited."""

    request_id: str
    key: int
    constraint: Constraint
    row: int = 0
    tokens: list[int] = field(default_factory=list)
    told: int = 0
    prepared: int = -1
    logits: "torch.Tensor | None" = None
    compile_s: float | None = None
    answer: Masked | Rewritten | None = None
    failure: Failure | None = None
    lives: int = LIVES

    def untold(self) -> tuple[int, ...]:
        """The tokens that the worker does not know; it is told them now."""
        tokens, self.told = tuple(self.tokens[self.told :]), len(self.tokens)
        return tokens

    def fail(self, kind: FailureKind, message: str) -> None:
        """Give the request up; the first reason stays."""
        self.failure = self.failure or Failure(self.request_id, kind, message)

    @property
    def settled(self) -> bool:
        """Whether there is something to collect."""
        return self.answer is not None or self.failure is not None
