"""Attempts at epochs: their names, and what all tasks of one are told."""

from __future__ import annotations

import secrets

from headwater.runtime.epoch.engine import Engine
from headwater.runtime.epoch.epoch_plan import EpochPlan, LastEpoch
from headwater.runtime.epoch.messages import Ack, Attempt, EpochHeader
from headwater.runtime.epoch.snapshot_chain import SnapshotChain
from headwater.runtime.job.checkpoints import Checkpoints
from headwater.runtime.job.job_sources import JobSources
from headwater.runtime.job.partitions import Partitions


class Attempts:
    """Tries epochs, once per call. The caller decides what follows a failure."""

    def __init__(self, engine: Engine, checkpoints: Checkpoints, partitions: Partitions, sources: JobSources) -> None:
        self._engine = engine
        self._checkpoints = checkpoints
        self._partitions = partitions
        self._sources = sources
        self._run = secrets.token_hex(3)
        self.incarnation = 1
        """Of the driver, and one more each time the job goes back: epoch numbers are then used again."""

    def run(self, plan: EpochPlan, last: LastEpoch, number: int) -> tuple[Attempt, list[Ack]]:
        """Try an epoch after `last`. Return its acknowledgements; raises `AttemptFailedError`."""
        attempt = Attempt(self.incarnation, plan.epoch, number, self._run)
        header = EpochHeader(
            attempt=attempt,
            base=self._checkpoints.base(last),
            now_ms=plan.now_ms,
            checkpointing=self._checkpoints.durably,
            final=plan.final,
            cut=plan.cut,
            wait=plan.wait,
            address_book=dict(self._partitions.book),
            watermarks=dict(self._partitions.watermarks),
            snapshots={place: SnapshotChain(chain) for place, chain in self._checkpoints.chains.durable.items()},
            restores=dict(self._partitions.restores),
            dataframe_state=self._sources.dataframe_state(),
            dataframe_bounded=not self._sources.streaming,
            resident=plan.resident,
            refusals=plan.refusals,
            letters=plan.letters,
        )
        return attempt, self._engine.run(header, plan.tasks, plan.dataframes)
