"""All numbers of a run: what `summary.json` holds and reports are made from."""

from typing import Literal

import msgspec

from harness.metrics.blocks import Block
from harness.metrics.confidences import Confidence as Confidence
from harness.metrics.estimate import Estimate
from harness.metrics.latency import Distribution
from harness.metrics.masking import Wanted
from harness.metrics.pairs import Pair
from harness.metrics.quality import Counts
from harness.metrics.recalibration import Recalibration
from harness.metrics.reliability import Reliability
from harness.metrics.speed import Split
from harness.metrics.targets import NO_TARGETS, Targets

Kind = Literal["ttft_s", "tpot_s", "itl_s", "e2e_s"]


class Summary(msgspec.Struct, frozen=True):
    """All numbers of one run, or of several runs compared (arms are then named `run:arm`).

    `arms` maps arm -> metric -> estimate; every arm has the same metrics, in the same order, and a metric that could
    not be had has value None. `harness.metrics.names` says what each is called, its unit and which way is better.
    The other maps go from arm to what the report draws; an arm that lacks it (no traces, no times) is not in the map.
    `reliability` and `recalibration` go arm -> confidence; `latency` arm -> kind of time.
    `notes` are sentences a reader must see beside the numbers (rows left out, blocks that span sessions, samples).
    `targets` are those of goodput.
    """

    task: str
    deployment: str
    seed: int
    arms: dict[str, dict[str, Estimate]]
    pairs: tuple[Pair, ...]
    counts: dict[str, Counts]
    reliability: dict[str, dict[Confidence, Reliability]]
    recalibration: dict[str, dict[Confidence, Recalibration]]
    latency: dict[str, dict[Kind, Distribution]]
    split: dict[str, Split]
    blocks: dict[str, tuple[Block, ...]]
    wanted: dict[str, Wanted]
    notes: tuple[str, ...]
    targets: Targets = NO_TARGETS
