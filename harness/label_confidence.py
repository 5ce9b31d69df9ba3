"""The probability of each label in front of an answer: every token of the label and the end, from the unmasked model.

Each label is scored as its own tokens (as the tokenizer writes the bare label) and the model's first stop token; the
probabilities are normalised over the labels. No length normalisation: a longer label is not helped.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import aclosing

from harness.constraint import Labels
from harness.deployment import Deployment
from harness.errors import ConfigError
from harness.exchange import Asker, Exchange
from harness.load import Closed, drive

PromptIds = tuple[int, ...]


class LabelBook:
    """Label probabilities by prompt: the arms of a block have the same prompts, so each is scored once."""

    def __init__(self, asker: Asker, keep: int = 4096) -> None:
        self._asker, self._keep = asker, keep
        self._known: dict[PromptIds, dict[str, float]] = {}

    def concerns(self, exchange: Exchange) -> bool:
        """Whether the answer to this example is one of a list of labels, and its section was reached."""
        return exchange.answer_prompt_ids is not None and self._labels(exchange) is not None

    def of(self, exchange: Exchange) -> dict[str, float] | None:
        """The probabilities that `score` found; None where `concerns` is false."""
        return self._known[exchange.answer_prompt_ids or ()] if self.concerns(exchange) else None

    async def score(self, exchanges: Sequence[Exchange]) -> None:
        """Score the labels in front of each answer, where that is not done yet."""
        if len(self._known) > self._keep:
            self._known.clear()
        new = {e.answer_prompt_ids or (): self._labels(e) or () for e in exchanges if self.concerns(e)}
        items = [(ids, labels) for ids, labels in new.items() if ids not in self._known]
        async with aclosing(drive(items, self._score_one, Closed(), 0)) as arriving:
            async for (ids, probabilities), _ in arriving:
                self._known[ids] = probabilities

    async def _score_one(self, item: tuple[PromptIds, tuple[str, ...]]) -> tuple[PromptIds, dict[str, float]]:
        ids, labels = item
        continuations = {label: continuation(self._asker, label) for label in labels}
        return ids, await score_labels(self._asker.deployment, ids, continuations)

    def _labels(self, exchange: Exchange) -> tuple[str, ...] | None:
        constraint = self._asker.task.constraints.get(exchange.question.row.id)
        return constraint.labels if isinstance(constraint, Labels) else None


def continuation(asker: Asker, label: str) -> tuple[int, ...]:
    """The ids of a label and its end."""
    ids = asker.prompter.encode(label)
    if asker.vocabulary.text(ids) != label:
        found = f"labels: {label!r} comes back from the tokenizer as {asker.vocabulary.text(ids)!r}"
        raise ConfigError(found, "labels that the tokenizer can write", "rename the label")
    return (*ids, asker.vocabulary.stop_ids[0])


async def score_labels(
    deployment: Deployment, prompt_ids: Sequence[int], ids: Mapping[str, Sequence[int]]
) -> dict[str, float]:
    """Probabilities over the labels that `ids` spell, in their order."""
    scores = await deployment.score(prompt_ids, list(ids.values()))
    return normalised(dict(zip(ids, (score.total for score in scores), strict=True)))


def normalised(totals: Mapping[str, float]) -> dict[str, float]:
    """Log-probabilities (nats) as probabilities that sum to 1."""
    top = max(totals.values())
    weights = {label: math.exp(total - top) for label, total in totals.items()}
    whole = sum(weights.values())
    return {label: weight / whole for label, weight in weights.items()}
