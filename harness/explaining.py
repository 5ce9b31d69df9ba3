"""Completing the traces of answers after the timed requests, on deployments that say only a part of them at once."""

import asyncio

import msgspec

from harness.deployment import Deployment, Explaining
from harness.exchange import Exchange
from harness.record import Part
from harness.request import Completion


def unexplained(deployment: Deployment, exchange: Exchange) -> bool:
    """Whether a trace in it lacks unmasked log-probabilities that the deployment can still tell."""
    return isinstance(deployment, Explaining) and any(map(_lacks, exchange.parts))


async def explained(deployment: Deployment, exchange: Exchange) -> Exchange:
    """The exchange with its traces as whole as they can be made. Raises `DeploymentError`."""
    if not unexplained(deployment, exchange):
        return exchange
    assert isinstance(deployment, Explaining)
    parts = await asyncio.gather(*(_explained(deployment, part) for part in exchange.parts))
    return msgspec.structs.replace(exchange, parts=tuple(parts))


def _lacks(part: Part) -> bool:
    result = part.result
    return isinstance(result, Completion) and result.trace is not None and None in result.trace.raw_logprob


async def _explained(deployment: Explaining, part: Part) -> Part:
    if not _lacks(part) or not isinstance(part.result, Completion):
        return part
    return msgspec.structs.replace(part, result=await deployment.explain(part.result))
