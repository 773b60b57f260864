"""Drafts the manifest of an epoch: all but the snapshots, which are not known at the cut."""

from __future__ import annotations

import time

from headwater.checkpoint.manifest import HeldRecord, Manifest
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch.epoch_plan import LastEpoch
from headwater.runtime.job.fingerprint import plan_fingerprint, stateful_operators
from headwater.runtime.job.job_sources import JobSources
from headwater.runtime.job.partitions import Partitions
from headwater.runtime.job.pending_output import Committables


class ManifestDrafts:
    """Knows what all manifests of a run have in common."""

    def __init__(self, plan: JobPlan, job_id: str, partitions: Partitions, sources: JobSources) -> None:
        self._plan = plan
        self._job_id = job_id
        self._partitions = partitions
        self._sources = sources

    def draft(
        self,
        last: LastEpoch,
        incarnation: int,
        output: Committables,
        held: dict[str, HeldRecord],
        counters: dict[str, int],
    ) -> Manifest:
        """Return the manifest of the epoch that was just accepted. It commits `output` and holds `held` back."""
        plan = self._plan
        return Manifest(
            job_id=self._job_id,
            job_name=plan.name,
            epoch=last.epoch,
            incarnation=incarnation,
            created_ms=int(time.time() * 1000),
            now_ms=last.now_ms,
            plan_fingerprint=plan_fingerprint(plan),
            max_parallelism=plan.max_parallelism,
            operators=stateful_operators(plan),
            partitions=self._partitions.records(),
            sources=self._sources.records(last),
            committables=output,
            held=held,
            counters=dict(counters),
            finished=last.finished,
            spark=dict(last.spark),
        )
