"""What the driver knows about the partitions: where their slots are, their watermarks, their next timers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headwater.checkpoint.manifest import Manifest, PartitionRecord
from headwater.checkpoint.restore.rescale import PartitionRestore
from headwater.common.errors import JobFailedError
from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK, Place
from headwater.graph.plan import JobPlan
from headwater.runtime.epoch.messages import PartitionAck, SlotAddress
from headwater.time.watermark_keys import is_input


class Partitions:
    """The partitions of all stages but the first, as of the last accepted epoch."""

    def __init__(self, plan: JobPlan) -> None:
        self._places = {Place(stage.index, index) for stage in plan.stages[1:] for index in range(stage.parallelism)}
        self.book: dict[Place, SlotAddress] = {}
        """Where the slots are. It stays when the job goes back: slots live on."""
        self.watermarks: dict[Place, dict[str, int]] = {}
        self.restores: Mapping[Place, PartitionRestore] = {}
        """What partitions begin with if a job of another shape made the checkpoint; empty after the first own one."""
        self._timers_ms: dict[Place, int | None] = {}

    @property
    def next_timer_ms(self) -> int | None:
        """When the next processing-time timer is due."""
        return min((timer for timer in self._timers_ms.values() if timer is not None), default=None)

    @property
    def event_time(self) -> int | None:
        """The lowest watermark at an operator's input; None before the first one and after the last one."""
        heads = [
            watermark
            for watermarks in self.watermarks.values()
            for key, watermark in watermarks.items()
            if is_input(key) and MIN_WATERMARK < watermark < MAX_WATERMARK
        ]
        return min(heads, default=None)

    def check_complete(self, epoch: int, acks: Sequence[PartitionAck]) -> None:
        """Raise `JobFailedError` unless each partition has acknowledged the epoch once."""
        found = [ack.place for ack in acks]
        if len(found) != len(self._places) or set(found) != self._places:
            raise JobFailedError(
                f"epoch {epoch}: acknowledged by {sorted(map(tuple, found))}, expected "
                f"{sorted(map(tuple, self._places))}; nothing of the epoch was committed"
            )

    def accept(self, acks: Sequence[PartitionAck]) -> None:
        """All partitions have acknowledged an epoch."""
        for ack in acks:
            self.watermarks[ack.place] = ack.outcome.watermarks
            self._timers_ms[ack.place] = ack.outcome.next_timer_ms
            if ack.address is not None:
                self.book[ack.place] = ack.address

    def records(self) -> list[PartitionRecord]:
        """Return the partitions' records for a manifest, without their snapshots."""
        return [
            PartitionRecord(*place, [], watermarks, next_processing_timer_ms=self._timers_ms.get(place))
            for place, watermarks in sorted(self.watermarks.items())
        ]

    def stand_at(self, manifest: Manifest | None) -> None:
        """The job resumes from, or goes back to, `manifest`; None: to its beginning."""
        records = manifest.partitions if manifest is not None else ()
        begin: Mapping[Place, PartitionRecord | PartitionRestore]
        begin = self.restores or {record.place: record for record in records}
        self.watermarks = {place: dict(each.watermarks) for place, each in begin.items()}
        self._timers_ms = {place: each.next_processing_timer_ms for place, each in begin.items()}

    def forget_restores(self) -> None:
        """A checkpoint in the job's own shape is complete: partitions load that one."""
        self.restores = {}
