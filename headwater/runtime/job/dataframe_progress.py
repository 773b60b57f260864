"""The progress of a DataFrame as a source, in the driver."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headwater.checkpoint.manifest import SourceRecord, SplitRecord
from headwater.common.ids import MIN_WATERMARK
from headwater.graph.plan import SourceSpec
from headwater.runtime.epoch.messages import SourceTask, SplitAck


def is_streaming_dataframe(spec: SourceSpec) -> bool:
    """Return True if Spark streams the source: each of its micro-batches is an epoch."""
    return hasattr(spec.source, "dataframe") and not spec.source.bounded


class DataFrameProgress:
    """A Spark DataFrame as a source. Spark reads it and keeps the offsets of a stream; here is only its event time."""

    def __init__(self, spec: SourceSpec) -> None:
        self.spec = spec
        self.dataframe: Any = spec.source.dataframe
        self.streaming = is_streaming_dataframe(spec)
        self._read = False
        self._operator_state = b""
        self._watermarks: dict[str, int] = {}
        self.records = 0

    @property
    def exhausted(self) -> bool:
        return not self.streaming and self._read

    def state(self) -> tuple[bytes, dict[str, int]]:
        return self._operator_state, self._watermarks

    def marker(self, index: int, *, final: bool) -> SourceTask:
        return SourceTask(index, self.spec.id, 0, marker=dict(self._watermarks), exhausted=self.exhausted, final=final)

    def apply(self, acks: Iterable[SplitAck], *, read: bool) -> int:
        """Take over the epoch's event time, and return its number of records. `read`: the epoch read the DataFrame.

        The partitions of a DataFrame differ from epoch to epoch, so the slowest partition's event time counts for all.
        """
        acks = [ack for ack in acks if ack.records]
        self._read = self._read or read
        if acks:
            slowest = min(acks, key=lambda ack: max(ack.watermarks.values(), default=MIN_WATERMARK))
            self._operator_state = slowest.operator_state
            for place, watermark in slowest.watermarks.items():
                self._watermarks[place] = max(self._watermarks.get(place, MIN_WATERMARK), watermark)
        count = sum(ack.records for ack in acks)
        self.records += count
        return count

    def record(self, epoch: int, attempt_id: str) -> SourceRecord:
        split = SplitRecord(b"", operator_state=self._operator_state, details=self._watermarks)
        return SourceRecord({"dataframe": split}, exhausted=self.exhausted)

    def restore(self, record: SourceRecord, now_ms: int) -> None:
        """Stand where `record` says. Called after `reset`."""
        self._read = record.exhausted
        split = record.splits["dataframe"]
        self._operator_state, self._watermarks = split.operator_state, dict(split.details)

    def reset(self) -> None:
        self.__init__(self.spec)  # type: ignore[misc]
