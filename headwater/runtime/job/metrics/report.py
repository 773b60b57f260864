"""All figures of a job as plain values, under Flink's names: what the control verb `metrics` answers. Pure.

    {"time": ms,
     "job": {name: number},
     "vertices": {id: {"name": ..., "parallelism": n, "aggregate": {name: number}, "subtasks": [{name: number}, ...],
                       "channels": [{"channel", "watermark", "idle", "silent_since"}, ...],
                       "hotKeys": [{"operator", "key", "share", "subtask"}, ...],
                       "splits": [{"split", "subtask", gauge: number ...}, ...]}},   if readers have gauges
     "edges": [{"source", "target", "ship_strategy", name: number ...}],
     "history": {"time": [ms, ...], "job": {name: [...]}, "vertices": {id: {name: [...]}}}}

The metrics of an operator are among those of its subtasks, as `Operator_name.metric`: Flink's REST has them so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK, Place
from headwater.metrics import Measured
from headwater.metrics import Snapshot as UserMetrics
from headwater.runtime.epoch.figures import add_counts
from headwater.runtime.job.checkpoint_stats import CheckpointStats
from headwater.runtime.job.metrics import names
from headwater.runtime.job.metrics.channels import channels_into
from headwater.runtime.job.metrics.epoch_counts import Key, Table, is_sink
from headwater.runtime.job.metrics.hot_keys import hottest
from headwater.runtime.job.metrics.job_metrics import PHASES, Snapshot, SplitState
from headwater.runtime.job.metrics.recent import Slice
from headwater.runtime.job.vertices import Vertex
from headwater.time.watermark_keys import at_input, at_output

_SUMMED = (*names.COUNTS, names.LATE_DROPPED, names.PENDING_RECORDS, names.STATE_ENTRIES, names.STATE_BYTES)
_JOB_SERIES = ("watermarkLag", "stateEntries", "outputLatency", "lastCheckpointDuration", "lastCheckpointSize")


def report(figures: Snapshot, job: Mapping[str, float], measured: Measured, since_ms: int = 0) -> dict[str, Any]:
    """Return everything. `job` are figures that others keep, `measured` those of user functions.

    The history has the points after `since_ms`, wall clock.
    """
    vertices = {vertex.id: _vertex(figures, vertex, measured) for vertex in figures.graph.vertices.values()}
    return {
        "time": figures.slices[-1].time_ms if figures.slices else 0,
        "job": {**_job(figures, vertices), **job},
        "vertices": vertices,
        "edges": _edges(figures),
        "history": _history(figures, since_ms),
    }


def rates(counts: Mapping[str, float], seconds: float, wanted: Iterable[str]) -> dict[str, float]:
    """Return {name + "PerSecond": ...} of counters that grew by `counts` in `seconds`."""
    return {name + names.PER_SECOND: round(counts.get(name, 0) / seconds, 3) if seconds > 0 else 0.0 for name in wanted}


# --- vertices


def _vertex(figures: Snapshot, vertex: Vertex, measured: Measured) -> dict[str, Any]:
    subtasks = [_subtask(figures, vertex, subtask, measured) for subtask in range(vertex.parallelism)]
    return {
        "name": vertex.name,
        "parallelism": vertex.parallelism,
        "aggregate": _aggregate(subtasks),
        "subtasks": subtasks,
        "channels": [each.as_dict() for each in channels_into(figures, vertex)],
        "hotKeys": hottest(figures, vertex),
        "splits": [
            {"split": split_id, "subtask": split.subtask, **split.gauges}
            for (source, split_id), split in _splits(figures, vertex)
            if split.gauges
        ],
    }


def _splits(figures: Snapshot, vertex: Vertex) -> Iterable[tuple[tuple[int, str], SplitState]]:
    """The open splits that are read in `vertex`."""
    if vertex.stage == 0:
        for (source, split_id), split in sorted(figures.splits.items(), key=lambda item: item[0]):
            if source in figures.graph.sources_of[vertex.id]:
                yield (source, split_id), split


def _subtask(figures: Snapshot, vertex: Vertex, subtask: int, measured: Measured) -> dict[str, float]:
    key, place = Key("subtask", vertex.id, subtask), Place(vertex.stage, subtask)
    totals, recent = figures.totals.get(key, {}), figures.recent.get(key, {})
    found: dict[str, float] = {name: totals.get(name, 0) for name in (*names.COUNTS, names.LATE_DROPPED)}
    found |= rates(recent, figures.recent_seconds, (*names.COUNTS, *names.TIMES))
    if not figures.recent_seconds:
        found[names.IDLE + names.PER_SECOND] = 1000.0
    found |= _watermarks(figures, vertex, subtask)
    found |= _source_gauges([split for _, split in _splits(figures, vertex) if split.subtask == subtask])
    state = figures.partitions.get(place)
    if state is not None:
        own = [each.uid for each in vertex.operators]
        entries = sum(state.state_entries.get(uid, 0) for uid in own)
        found[names.STATE_ENTRIES] = entries
        found[names.STATE_BYTES] = _state_bytes(figures.checkpoint, place, entries, sum(state.state_entries.values()))
        timers = [state.event_timers[uid] for uid in own if uid in state.event_timers]
        if timers:
            found[names.NEXT_EVENT_TIMER] = min(timers)
        if state.next_timer_ms is not None:
            found[names.NEXT_PROCESSING_TIMER] = state.next_timer_ms
        process = figures.recent.get(Key("process", str(place.stage), subtask), {})
        found |= rates(process, figures.recent_seconds, (names.CPU, names.GC, names.MAJOR_FAULTS))
    for operator in vertex.operators:
        scope = re.sub(r"[^A-Za-z0-9_:]+", "_", operator.name)
        counts = figures.totals.get(Key("operator", operator.uid, subtask), {})
        found |= {f"{scope}.{name}": count for name, count in counts.items()}
        found |= {f"{scope}.{name}": value for name, value in flat(measured.get(operator.uid, {}).get(subtask, {}))}
    return found


def _source_gauges(splits: Sequence[SplitState]) -> dict[str, float]:
    """The gauges of a subtask that reads these splits: the lags add up; of ages and delays the worst counts."""
    found: dict[str, float] = {}
    for name, choose in ((names.PENDING_RECORDS, sum), (names.FETCH_LAG, max), (names.OLDEST_UNREAD, max)):
        values = [split.gauges[name] for split in splits if name in split.gauges]
        if values:
            found[name] = choose(values)
    return found


def flat(metrics: UserMetrics) -> Iterable[tuple[str, float]]:
    """Yield the metrics of a function as (name, number): Flink's fields, joined by a dot."""
    for path, value in metrics.items():
        kind = value["kind"]
        if kind == "counter":
            yield path, value["count"]
        elif kind == "gauge" and isinstance(value["value"], int | float):
            yield path, value["value"]
        elif kind == "meter":
            yield f"{path}.count", value["count"]
            yield f"{path}.rate", value["rate"]
        elif kind == "distribution" and value["count"]:
            yield from ((f"{path}.{name}", value[name]) for name in ("count", "min", "max"))
            yield f"{path}.mean", value["sum"] / value["count"]


def _watermarks(figures: Snapshot, vertex: Vertex, subtask: int) -> dict[str, float]:
    if vertex.stage == 0:
        last = vertex.operators[-1].uid
        splits = [
            split.watermark(last)
            for (source, _), split in figures.splits.items()
            if source in figures.graph.sources_of[vertex.id] and split.subtask == subtask and not split.idle
        ]
        watermark_in, watermark_out = None, min(splits, default=MIN_WATERMARK)
    else:
        state = figures.partitions.get(Place(vertex.stage, subtask))
        reached = state.watermarks if state is not None else {}
        watermark_in = reached.get(at_input(vertex.head), MIN_WATERMARK)
        outputs = [reached[at_output(each.uid)] for each in vertex.operators if at_output(each.uid) in reached]
        watermark_out = min(outputs, default=MIN_WATERMARK)
    found: dict[str, float] = {names.OUTPUT_WATERMARK: watermark_out}
    if watermark_in is not None:
        found[names.INPUT_WATERMARK] = watermark_in
    shown = watermark_out if watermark_in is None else watermark_in
    if MIN_WATERMARK < shown < MAX_WATERMARK:
        found[names.WATERMARK_LAG] = figures.now_ms - shown
    return found


def _state_bytes(checkpoint: CheckpointStats | None, place: Place, entries: int, all_entries: int) -> int:
    """What a restore of the partition reads. If several vertices share the files, by the number of their entries."""
    parts = checkpoint.parts if checkpoint is not None else ()
    size = next((part.full_bytes for part in parts if (part.stage, part.partition) == place), 0)
    return size if entries == all_entries else size * entries // all_entries


def _aggregate(subtasks: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Sums of counts and rates; the mean and the most of times; the slowest watermark."""

    def values(name: str) -> list[float]:
        return [subtask[name] for subtask in subtasks if name in subtask]

    found: dict[str, float] = {name: sum(values(name)) for name in _SUMMED if values(name)}
    for name in names.COUNTS:
        found[name + names.PER_SECOND] = round(sum(values(name + names.PER_SECOND)), 3)
    for name in (each + names.PER_SECOND for each in names.TIMES):
        found[name] = round(sum(values(name)) / len(subtasks), 3)
        found[f"{name}.max"] = max(values(name))
    for name, choose in (
        (names.INPUT_WATERMARK, min),
        (names.OUTPUT_WATERMARK, min),
        (names.WATERMARK_LAG, max),
        (names.FETCH_LAG, max),
        (names.OLDEST_UNREAD, max),
        (names.NEXT_EVENT_TIMER, min),
        (names.NEXT_PROCESSING_TIMER, min),
    ):
        if values(name):
            found[name] = choose(values(name))
    return found


# --- the job, its edges, its history


def _job(figures: Snapshot, vertices: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    sources = [vertex for vertex in figures.graph.vertices.values() if not vertex.inputs]
    found: dict[str, float] = {
        f"{phase}TimeMs": round(milliseconds, 3) for phase, milliseconds in figures.phases.items()
    }
    epochs = figures.recent_sums.get("epochs", 0)
    found["epoch"] = figures.epoch
    found["epochDuration"] = round(figures.recent_sums.get("epochMs", 0) / epochs, 3) if epochs else 0.0
    found["numEpochsPerSecond"] = rates({"n": epochs}, figures.recent_seconds, ("n",))["n" + names.PER_SECOND]
    for name in (names.RECORDS_IN, names.RECORDS_IN + names.PER_SECOND):
        found[name] = sum(vertices[vertex.id]["aggregate"][name] for vertex in sources)
    found[names.RECORDS_OUT] = sum(
        counts.get(names.RECORDS_IN, 0) for key, counts in figures.totals.items() if is_sink(figures.graph, key)
    )
    written = {names.RECORDS_OUT: figures.recent_sums.get("written", 0)}
    found |= rates(written, figures.recent_seconds, (names.RECORDS_OUT,))
    if figures.output_latency_ms is not None:
        found["outputLatency"] = round(figures.output_latency_ms, 3)
    lags = [
        each["aggregate"][names.WATERMARK_LAG] for each in vertices.values() if names.WATERMARK_LAG in each["aggregate"]
    ]
    if lags:
        found[names.WATERMARK_LAG] = max(lags)
    return found


def _edges(figures: Snapshot) -> list[dict[str, Any]]:
    def traffic(table: Table, number: int) -> dict[str, float]:
        total: dict[str, float] = {}
        for key, counts in table.items():
            if key.kind == "edge" and key.id == str(number):
                add_counts(total, counts)
        return {"numRecords": total.get(names.RECORDS_OUT, 0), "numBytes": total.get(names.BYTES_OUT, 0)}

    return [
        {
            "source": edge.source,
            "target": edge.target,
            "ship_strategy": edge.ship_strategy,
            **traffic(figures.totals, number),
            **rates(traffic(figures.recent, number), figures.recent_seconds, ("numRecords", "numBytes")),
        }
        for number, edge in enumerate(figures.graph.edges)
    ]


def _history(figures: Snapshot, since_ms: int) -> dict[str, Any]:
    """Lists of equal length, one point per slice, oldest first. Shares of time are means over the partitions."""
    slices = [each for each in figures.slices if each.time_ms > since_ms and each.seconds > 0]
    graph = figures.graph
    wanted = (*names.COUNTS, *names.TIMES)
    vertices: dict[str, dict[str, list[float]]] = {
        vertex: {name + names.PER_SECOND: [] for name in wanted} for vertex in graph.vertices
    }
    for each in slices:
        by_vertex: dict[str, dict[str, float]] = {}
        for key, counts in each.table.items():
            if key.kind in ("subtask", "vertex"):
                add_counts(by_vertex.setdefault(key.id, {}), counts)
        for vertex, series in vertices.items():
            counts = by_vertex.get(vertex, {})
            parallelism = graph.vertices[vertex].parallelism
            for name in wanted:
                share = parallelism if name in names.TIMES else 1
                series[name + names.PER_SECOND].append(round(counts.get(name, 0) / share / each.seconds, 3))
    job: dict[str, list[float | None]] = {name: [each.gauges.get(name) for each in slices] for name in _JOB_SERIES}
    job["numRecordsInPerSecond"] = [round(each.sums["records"] / each.seconds, 3) for each in slices]
    job["numRecordsOutPerSecond"] = [round(each.sums["written"] / each.seconds, 3) for each in slices]
    job["epochDuration"] = [_mean(each, "epochMs") for each in slices]
    job |= {f"{phase}TimeMs": [_mean(each, f"{phase}Ms") for each in slices] for phase in PHASES[:4]}
    return {"time": [each.time_ms for each in slices], "job": job, "vertices": vertices}


def _mean(each: Slice, name: str) -> float:
    return round(each.sums.get(name, 0.0) / each.sums["epochs"], 3)
