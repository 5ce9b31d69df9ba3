"""The continuations of a prompt as a tree, so that what they share is computed once."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from harness.deployments.embedded.cache import Plan

PROMPT = -1
"""The root: the last token of the prompt."""


@dataclass(frozen=True)
class Tree:
    """The inner tokens of some continuations, parents first. Node `i` is `tokens[i]`, `depths[i]` tokens after the
    first of its continuation, below node `parents[i]`. `paths[j][t]` is the node whose logits tell token `t` of
    continuation `j`: the last token of a continuation is told by another and needs no node."""

    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    depths: tuple[int, ...]
    paths: tuple[tuple[int, ...], ...]

    def ancestors(self) -> torch.Tensor:
        """Bool, shape `(nodes, nodes)`: which nodes each node looks at, itself included."""
        looks = torch.eye(len(self.tokens), dtype=torch.bool)
        for node, parent in enumerate(self.parents):
            if parent != PROMPT:
                looks[node] |= looks[parent]
        return looks


def tree(continuations: Sequence[Sequence[int]]) -> Tree:
    """The tree of `continuations`, none of them empty."""
    inner = {tuple(each[:n]) for each in continuations for n in range(1, len(each))}
    prefixes = sorted(inner, key=lambda prefix: (len(prefix), prefix))
    nodes = {prefix: node for node, prefix in enumerate(prefixes)} | {(): PROMPT}
    return Tree(
        tokens=tuple(prefix[-1] for prefix in prefixes),
        parents=tuple(nodes[prefix[:-1]] for prefix in prefixes),
        depths=tuple(len(prefix) - 1 for prefix in prefixes),
        paths=tuple(tuple(nodes[tuple(each[:n])] for n in range(len(each))) for each in continuations),
    )


def tree_plan(branches: Tree, looks: torch.Tensor, prompt: int, first: int, last: int) -> Plan:
    """Nodes `first` to `last` (excluded) as one sequence in slot 0, behind a prompt of `prompt` tokens and the nodes
    before them. `looks` are their ancestors."""
    count = last - first
    sees_prompt = torch.ones((count, prompt), dtype=torch.bool)
    return Plan(
        slots=(0,),
        ids=torch.tensor([branches.tokens[first:last]]),
        positions=torch.tensor([branches.depths[first:last]]) + prompt,
        mask=torch.cat((sees_prompt, looks[first:last, :last]), dim=1)[None, None],
        real=None,
        write_slots=torch.zeros(count, dtype=torch.long),
        write_at=torch.arange(first, last) + prompt,
        length=prompt + last,
        keep=count,
    )
