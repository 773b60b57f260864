"""The channels that a vertex waits for: whose watermark is where, and since when nothing has come. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headwater.common.ids import MIN_WATERMARK, Place
from headwater.runtime.job.metrics.job_metrics import Snapshot, SplitState
from headwater.runtime.job.vertices import Vertex
from headwater.time.watermark_keys import at_output


@dataclass(frozen=True)
class Channel:
    """One producer on one edge: a split of a source, or a partition of an operator."""

    producer: str
    """Uid of the operator or source that writes to it."""
    name: str
    """`split orders-0 of Source: orders`, or `partition 1 of Count`."""
    watermark: int
    idle: bool
    silent_since_ms: int | None = None
    """Processing time of the last record of a split (or of when the job first asked it); None: of a partition."""
    split: tuple[int, str] | None = None
    partition: Place | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for people and tools."""
        return {
            "channel": self.name,
            "watermark": self.watermark,
            "idle": self.idle,
            "silent_since": self.silent_since_ms,
        }


def channels_into(figures: Snapshot, vertex: Vertex) -> list[Channel]:
    """Return the channels into the head of `vertex`, those with the lowest watermark first."""
    graph = figures.graph
    found = [
        channel
        for operator in _operators(figures, vertex.head)
        for spec in operator.inputs
        for channel in channels_of(figures, graph.uid_of[spec.upstream])
    ]
    return sorted(found, key=lambda each: (each.idle, each.watermark, each.name))


def _operators(figures: Snapshot, uid: str) -> Iterator[Any]:
    return (each for stage in figures.graph.plan.stages for each in stage.operators if each.uid == uid)


def channels_of(figures: Snapshot, uid: str) -> list[Channel]:
    """Return the channels on which operator or source `uid` sends."""
    graph = figures.graph
    vertex = graph.vertices[graph.vertex_of[uid]]
    name = graph.names[uid]
    if vertex.stage == 0:
        sources = {source.id: source.name for source in graph.plan.sources if source.id in graph.sources_of[vertex.id]}
        return [
            Channel(
                uid,
                f"split {split_id} of Source: {sources[source]}",
                split.watermark(uid),
                split.idle,
                silent_since(split),
                split=(source, split_id),
            )
            for (source, split_id), split in figures.splits.items()
            if source in sources
        ]
    return [
        Channel(
            uid,
            f"partition {place.partition} of {name}",
            state.watermarks.get(at_output(uid), MIN_WATERMARK),
            uid in state.idle,
            partition=place,
        )
        for place, state in figures.partitions.items()
        if place.stage == vertex.stage and place.partition < vertex.parallelism
    ]


def silent_since(split: SplitState) -> int:
    """When the split's last record came; if none ever came, when the job first asked it."""
    return split.since_ms if split.last_record_ms is None else split.last_record_ms
