"""All sources of a job together: what they can read now, an epoch's tasks, and how far they have come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from headwater.checkpoint.manifest import Manifest, SourceRecord
from headwater.checkpoint.paths import CheckpointLayout
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch.decisions import SourceFacts
from headwater.runtime.epoch.epoch_plan import EpochPlan, LastEpoch
from headwater.runtime.epoch.messages import Ack, SourceTask, SplitAck
from headwater.runtime.job.dataframe_progress import DataFrameProgress
from headwater.runtime.job.source_alignment import alignment_of, limits
from headwater.runtime.job.source_progress import SplitSourceProgress


class JobSources:
    """Owned by the coordinator; not thread safe."""

    def __init__(self, plan: JobPlan, layout: CheckpointLayout | None) -> None:
        self.splits: list[SplitSourceProgress] = []
        self.dataframes: list[DataFrameProgress] = []
        for spec in plan.sources:
            if hasattr(spec.source, "dataframe"):
                self.dataframes.append(DataFrameProgress(spec))
            else:
                self.splits.append(SplitSourceProgress(spec, layout, alignment_of(plan, spec)))

    def __iter__(self) -> Iterator[SplitSourceProgress | DataFrameProgress]:
        yield from self.splits
        yield from self.dataframes

    # --- facts

    @property
    def exhausted(self) -> bool:
        """Every source was read to its end."""
        return all(source.exhausted for source in self)

    @property
    def streaming(self) -> bool:
        """Spark streams a DataFrame: each of its micro-batches is an epoch."""
        return any(source.streaming for source in self.dataframes)

    def discover(self, now_ms: int) -> None:
        """Look for new splits where it is time to."""
        for source in self.splits:
            source.discover(now_ms)

    def unread_dataframes(self) -> dict[int, Any]:
        """Return {source: DataFrame} of the bounded DataFrames that no epoch has read."""
        return {
            source.spec.id: source.dataframe
            for source in self.dataframes
            if not source.streaming and not source.exhausted
        }

    def facts(self, now_ms: int, *, watching: bool = False) -> SourceFacts:
        """Return when sources may be asked for records. `watching`: the engine waits for those that can wait."""
        asked = [source for source in self.splits if not source.source.rate_per_second and source.can_read(now_ms)]
        limited = [source.next_read_ms(now_ms) for source in self.splits if source.source.rate_per_second]
        discoveries = [source.next_discovery_ms() for source in self.splits]
        return SourceFacts(
            exhausted=self.exhausted,
            readable=bool(self.unread_dataframes() or asked),
            watched=watching and all(source.source.waits and source.all_opened for source in asked),
            rate_allows_ms=_earliest(limited),
            discovery_ms=_earliest(discoveries),
        )

    def dataframe_state(self) -> dict[int, tuple[bytes, dict[str, int]]]:
        """Return {DataFrame source: (operator state, watermarks)}."""
        return {source.spec.id: source.state() for source in self.dataframes}

    # --- the epoch

    def tasks(self, now_ms: int, budget: int, dataframes: Mapping[int, Any], *, final: bool) -> list[SourceTask]:
        """Return the tasks of an epoch that reads up to `budget` records, and these DataFrames."""
        readers = sum(1 for source in self.splits if source.can_read(now_ms))
        share = max(1, budget // max(1, readers))
        tasks: list[SourceTask] = []
        aligned = limits((source.alignment, source.slowest_aligned()) for source in self.splits)
        for source in self.splits:
            tasks += source.plan(len(tasks), share, now_ms, final=final, aligned=aligned)
        for dataframe in self.dataframes:
            if dataframe.spec.id not in dataframes:
                tasks.append(dataframe.marker(len(tasks), final=final))
        return tasks

    def markers(self, *, final: bool) -> list[SourceTask]:
        """Return tasks that read nothing and leave event time unchanged."""
        return [source.marker(index, final=final) for index, source in enumerate(self)]

    def accept(self, plan: EpochPlan, messages: Iterable[Ack]) -> int:
        """Stand where the epoch got to. Return how many records it read."""
        acks: dict[int, list[SplitAck]] = {}
        for message in messages:
            if isinstance(message, SplitAck):
                acks.setdefault(message.source_id, []).append(message)
        records = sum(source.apply(acks.get(source.spec.id, ()), plan.epoch) for source in self.splits)
        for dataframe in self.dataframes:
            read = dataframe.spec.id in plan.dataframes
            records += dataframe.apply(acks.get(dataframe.spec.id, ()), read=read)
        return records

    # --- persistence

    def records(self, last: LastEpoch) -> dict[str, SourceRecord]:
        """Return the sources' records for the manifest of `last`. May write files that the records name."""
        return {source.spec.uid: source.record(last.epoch, last.token) for source in self}

    def stand_at(self, manifest: Manifest | None, now_ms: int) -> None:
        """The job resumes from, or goes back to, `manifest`; None: to its beginning."""
        for source in self:
            source.reset()  # the manifest may not know it: then it was added since, and begins anew
            if manifest is not None and source.spec.uid in manifest.sources:
                source.restore(manifest.sources[source.spec.uid], now_ms)
        for split_source in self.splits:
            split_source.next_epoch = manifest.epoch + 1 if manifest is not None else 0


def _earliest(times_ms: Iterable[int | None]) -> int | None:
    return min((time_ms for time_ms in times_ms if time_ms is not None), default=None)
