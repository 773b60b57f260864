"""One epoch as values: what it will be, and what is known of the last one that was accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headwater.checkpoint.manifest import Manifest
from headwater.common.dead_letter import DeadLetter
from headwater.runtime.epoch.messages import Attempt, SourceTask
from headwater.runtime.epoch.refusals import Refusals


@dataclass(frozen=True)
class EpochPlan:
    """An epoch to run. Only the engine and what is refused may differ from attempt to attempt."""

    epoch: int
    now_ms: int
    tasks: Sequence[SourceTask]
    dataframes: Mapping[int, Any] = field(default_factory=dict)
    """{source: the DataFrame that the epoch reads}"""
    final: bool = False
    """The job's input is over: event time ends."""
    cut: bool = True
    """The epoch ends with a checkpoint."""
    wait: bool = False
    """Its checkpoint is complete before the job goes on."""
    spark: Mapping[str, Any] = field(default_factory=dict)
    """The micro-batch of streaming DataFrames that the epoch is, for its manifest."""
    budget: int = 0
    """How many records it may read."""
    resident: bool = False
    """The resident engine runs it."""
    refusals: Refusals = field(default_factory=Refusals)
    """Records that operators refused in earlier attempts: it runs without them."""
    letters: tuple[DeadLetter, ...] = ()
    """Dead letters that come into it once more."""


@dataclass(frozen=True)
class LastEpoch:
    """The last accepted epoch: where the job stands."""

    epoch: int = -1
    """-1: nothing was read yet."""
    now_ms: int = 0
    token: str = "start"
    """Names the state after it: epoch numbers are used again after the job went back to a checkpoint."""
    finished: bool = False
    """It was the job's last."""
    spark: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, manifest: Manifest | None, token: str, least_ms: int) -> LastEpoch:
        """The epoch of a checkpoint (None: a job's beginning). Operators have seen `least_ms`: it is no earlier."""
        if manifest is None:
            return cls(now_ms=least_ms, token=token)
        now_ms = max(manifest.now_ms, least_ms)
        return cls(manifest.epoch, now_ms, token, manifest.finished, dict(manifest.spark))

    @classmethod
    def accepted(cls, plan: EpochPlan, attempt: Attempt) -> LastEpoch:
        return cls(plan.epoch, plan.now_ms, attempt.id, plan.final, plan.spark)
