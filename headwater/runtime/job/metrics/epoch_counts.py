"""What an accepted epoch adds to the job's counters, from its acknowledgements. Pure.

Time: an epoch runs stage after stage. A partition is *busy* while its operators run. The rest of the time it waits. It
is *back-pressured* while later stages work on an epoch that used up its budget (the sources had more, but nobody asked
for it), and while nobody takes its output. Otherwise it is *idle*: it waits for earlier stages, for slower partitions
of its own stage, for the checkpoint, or for input.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headwater.runtime.epoch.epoch_plan import EpochPlan
from headwater.runtime.epoch.figures import add_counts
from headwater.runtime.epoch.messages import Ack, EpochOutcome, PartitionAck, SourceAck, SplitAck
from headwater.runtime.job.metrics import names
from headwater.runtime.job.metrics.graph_index import GraphIndex


class Key(NamedTuple):
    """Whose counters: a "subtask" of a vertex, of an "operator", of an "edge", or the "process" of a partition."""

    kind: str
    id: str
    """Of the vertex, operator (uid), edge (number) or stage."""
    subtask: int


Table = dict[Key, dict[str, float]]


def add_table(total: Table, more: Mapping[Key, Mapping[str, float]]) -> None:
    """Add `more` to `total`."""
    for key, counts in more.items():
        known = total.get(key)
        if known is None:
            total[key] = dict(counts)
        else:
            add_counts(known, counts)


@dataclass(frozen=True)
class EpochCounts:
    """What one epoch adds."""

    table: Table
    records: int
    """Read from sources."""
    written: int
    """Given to sinks."""
    full: bool
    """A source had more than the epoch asked for."""
    read_ms: float
    """The slowest task of stage 0: reading, and the operators chained to the source."""
    process_ms: float
    """The later stages: the slowest partition of each, added up."""


def count_epoch(graph: GraphIndex, plan: EpochPlan, messages: Sequence[Ack], span_ms: float) -> EpochCounts:
    """Count an accepted epoch. `span_ms` is the time since the one before it ended."""
    table: Table = {}
    stage_ms: dict[int, float] = {}
    blocked_ms: dict[tuple[int, int], float] = {}
    for message in messages:
        if isinstance(message, SplitAck):
            continue
        stage, subtask = (0, message.subtask) if isinstance(message, SourceAck) else message.place
        _count_outcome(graph, table, subtask, message.outcome)
        busy_ms = sum(message.outcome.figures.busy_ms.values())
        # One resident task reads all sources, one after the other. Otherwise tasks run side by side.
        before_ms = stage_ms.get(stage, 0.0)
        stage_ms[stage] = before_ms + busy_ms if stage == 0 and plan.resident else max(before_ms, busy_ms)
        if isinstance(message, PartitionAck):
            blocked_ms[stage, subtask] = message.outcome.figures.blocked_ms
            table[Key("process", str(stage), subtask)] = _process_counts(message.outcome, busy_ms)
    full = full_sources(graph, plan, messages)
    for vertex in graph.vertices.values():
        behind_ms = sum(ms for stage, ms in stage_ms.items() if stage > vertex.stage)
        pressed = not full.isdisjoint(graph.sources_of[vertex.id])
        for subtask in range(vertex.parallelism):
            counts = table.setdefault(Key("subtask", vertex.id, subtask), {})
            waits_ms = max(0.0, span_ms - counts.setdefault(names.BUSY, 0.0))
            back_ms = blocked_ms.get((vertex.stage, subtask), 0.0) + (behind_ms if pressed else 0.0)
            counts[names.BACK_PRESSURED] = min(waits_ms, back_ms)
            counts[names.IDLE] = waits_ms - counts[names.BACK_PRESSURED]
    records = sum(message.records for message in messages if isinstance(message, SplitAck))
    process_ms = sum(ms for stage, ms in stage_ms.items() if stage > 0)
    written = sum(int(table[key].get(names.RECORDS_IN, 0)) for key in table if is_sink(graph, key))
    return EpochCounts(table, records, written, bool(full), stage_ms.get(0, 0.0), process_ms)


def is_sink(graph: GraphIndex, key: Key) -> bool:
    """Return True if the counters of `key` are those of a sink."""
    return key.kind == "operator" and key.id in graph.sink_uids


def full_sources(graph: GraphIndex, plan: EpochPlan, messages: Iterable[Ack]) -> set[int]:
    """Return the sources of which the epoch read all that it asked for, so that they have more.

    A source with a rate limit is asked for what is due, and no more. That is no back pressure.
    """
    budgets = {
        (task.source_id, split.split.split_id): split.budget
        for task in plan.tasks
        if task.source_id not in graph.limited
        for split in task.splits
    }
    return {
        message.source_id
        for message in messages
        if isinstance(message, SplitAck)
        and not message.finished
        and message.records >= budgets.get((message.source_id, message.split_id), message.records + 1)
        and message.records
    }


def _count_outcome(graph: GraphIndex, table: Table, subtask: int, outcome: EpochOutcome) -> None:
    """Enter what the operators of one partition did, as operators, vertices and edges."""

    def add(kind: str, id: str, name: str, count: float) -> None:
        counts = table.setdefault(Key(kind, id, subtask), {})
        counts[name] = counts.get(name, 0) + count

    def leaves(number: int, records: int, size: int) -> None:
        add("subtask", graph.edges[number].source, names.RECORDS_OUT, records)
        add("subtask", graph.edges[number].source, names.BYTES_OUT, size)
        add("edge", str(number), names.RECORDS_OUT, records)
        add("edge", str(number), names.BYTES_OUT, size)

    figures = outcome.figures
    for uid, count in outcome.records_in.items():
        if count:
            add("operator", uid, names.RECORDS_IN, count)
            if uid in graph.heads:
                add("subtask", graph.vertex_of[uid], names.RECORDS_IN, count)
    for uid, count in figures.records_out.items():
        add("operator", uid, names.RECORDS_OUT, count)
        if uid in graph.source_uids:  # what it read
            add("operator", uid, names.RECORDS_IN, count)
            add("subtask", graph.vertex_of[uid], names.RECORDS_IN, count)
        for number in graph.borders.get(uid, ()):
            leaves(number, count, 0)
    for edge, (records, size) in figures.sent.items():
        leaves(graph.edge_number[edge], records, size)
    for edge, (_, size) in figures.received.items():
        add("subtask", graph.edges[graph.edge_number[edge]].target, names.BYTES_IN, size)
    for uid, partitions in outcome.metrics.items():
        late = sum(each.get(names.LATE_DROPPED, {}).get("count", 0) for each in partitions.values())
        if late:
            add("operator", uid, names.LATE_DROPPED, late)
            add("subtask", graph.vertex_of[uid], names.LATE_DROPPED, late)
    for uid, busy_ms in figures.busy_ms.items():
        add("subtask", graph.vertex_of[uid], names.BUSY, busy_ms)


def _process_counts(outcome: EpochOutcome, busy_ms: float) -> dict[str, float]:
    figures = outcome.figures
    return {
        names.BUSY: busy_ms,
        names.CPU: figures.cpu_ms,
        names.GC: figures.gc_ms,
        names.BLOCKED: figures.blocked_ms,
        names.MAJOR_FAULTS: figures.major_faults,
        names.PREEMPTED: figures.preempted,
    }
