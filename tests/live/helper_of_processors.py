"""What `bad_processors` imports: it has to be shipped along."""

import torch


def only(logits: torch.Tensor, token: int) -> torch.Tensor:
    """Only `token` stays possible."""
    new = torch.full_like(logits, -torch.inf)
    new[token] = logits[token]
    return new
