"""Names what charts only show: skew, hot keys, a slow host, a stalled slot, slow checkpoints, a growing backlog. Pure.

Each finder looks at the last seconds (`recent`). Below its threshold it says nothing: small numbers prove nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

from headwater.common.ids import Place
from headwater.runtime.job.metrics import names
from headwater.runtime.job.metrics.epoch_counts import Key
from headwater.runtime.job.metrics.hot_keys import ENOUGH_RECORDS, key_shares, recent_records
from headwater.runtime.job.metrics.job_facts import Cause, JobFacts, shown_duration
from headwater.runtime.job.vertices import Vertex

SKEWED = 2.0
"""A partition is skewed if it gets this many times the mean."""
HOT_SHARE = 0.2
SLOW_HOST = 2.0
"""A host is slow if a record costs this many times as much as on the others."""
STALLED_SHARE = 0.3
"""A slot is stalled if it stands still for this share of the time."""
GC_SHARE = 0.1
SWAPPED_BYTES = 16 << 20
FAULTS_PER_SECOND = 50.0
BACKLOG_SECONDS = 20.0
FULL_SHARE = 0.9
MORE_MEMORY = "give the host more memory, or use the state backend 'rocksdb'"


def findings(facts: JobFacts) -> list[Cause]:
    """Return what is found, the gravest kind first."""
    return [cause for finder in FINDERS for cause in finder(facts)]


def stalled_slots(facts: JobFacts) -> Iterator[Cause]:
    """Slots that are stopped, swap, collect garbage, or do neither compute nor wait for input."""
    named: set[Place] = set()
    for slot in facts.slots:
        if slot.stopped or slot.swapped_bytes >= SWAPPED_BYTES:
            named.add(slot.place)
            what, cure = (
                (f"process {slot.pid} is stopped", f"continue it (kill -CONT {slot.pid}), or end it: it is replaced")
                if slot.stopped
                else (
                    f"{slot.swapped_bytes >> 20} MiB of process {slot.pid} are swapped out",
                    MORE_MEMORY,
                )
            )
            yield _at(facts, "stalled-slot", slot.place, f"{what}, on host {slot.host}", cure)
    figures = facts.figures
    seconds = figures.recent_seconds
    for key, counts in figures.recent.items():
        place = Place(int(key.id), key.subtask) if key.kind == "process" else None
        if place is None or place in named or not seconds:
            continue
        unaccounted_ms = counts.get(names.BUSY, 0.0) - counts.get(names.CPU, 0.0)
        gc_ms, faults = counts.get(names.GC, 0.0), counts.get(names.MAJOR_FAULTS, 0.0) / seconds
        if gc_ms > GC_SHARE * seconds * 1000:
            text = f"garbage collection took {shown_duration(gc_ms)} of the last {seconds:.0f} s"
            yield _at(facts, "stalled-slot", place, text, "avoid reference cycles in state and in what functions keep")
        elif faults > FAULTS_PER_SECOND:
            text = f"{faults:,.0f} pages per second were read from disk: memory is short"
            yield _at(facts, "stalled-slot", place, text, MORE_MEMORY)
        elif unaccounted_ms > STALLED_SHARE * seconds * 1000:
            preempted = counts.get(names.PREEMPTED, 0.0) / seconds
            text = (
                f"for {shown_duration(unaccounted_ms)} of the last {seconds:.0f} s it neither computed nor waited for "
                f"input; others got its processor {preempted:,.0f} times per second"
            )
            cure = (
                "a function waits for something (a request, a file, a lock), or the process was stopped, or its host "
                "has too much to do: look at the function, and at the load of the host"
            )
            yield _at(facts, "stalled-slot", place, text, cure)


def hot_keys(facts: JobFacts) -> Iterator[Cause]:
    """Keys that have a large part of an operator's records."""
    graph = facts.figures.graph
    for hot in key_shares(facts.figures):
        vertex = graph.vertices[graph.vertex_of[hot.uid]]
        if hot.share >= HOT_SHARE and vertex.parallelism > 1:
            yield Cause(
                "hot-key",
                f"key {hot.key} (key group {hot.key_group}) has about {hot.share:.0%} of the records of "
                f"'{graph.names[hot.uid]}'; partition {hot.subtask} gets {hot.subtask_share:.0%} of them",
                "aggregate before the key_by, or add a part to the key and aggregate twice; more partitions do not "
                "help a single key",
                graph.names[hot.uid],
                vertex.id,
                hot.subtask,
            )


def skew(facts: JobFacts) -> Iterator[Cause]:
    """Partitions of a vertex that get far more records than the others, with no single key to blame."""
    blamed = {cause.vertex for cause in hot_keys(facts)}
    for vertex in facts.figures.graph.vertices.values():
        whole = recent_records(facts.figures, vertex)
        if vertex.parallelism < 2 or whole < ENOUGH_RECORDS or vertex.id in blamed:
            continue
        most, subtask = max((recent_records(facts.figures, vertex, each), each) for each in range(vertex.parallelism))
        if most >= SKEWED * whole / vertex.parallelism or (most == whole and vertex.parallelism > 1):
            ship = ", ".join(sorted({each.ship_strategy for each in vertex.inputs}))
            cure = {
                "HASH": "the keys fall into few key groups: choose a key with more values, or another max parallelism",
                "": "its splits are of different sizes, or fewer than partitions: more, smaller splits; or rebalance()",
            }.get(ship, "the exchange before it sends more to this partition: use rebalance()")
            yield Cause(
                "skew",
                f"partition {subtask} of '{vertex.name}' gets {most / whole:.0%} of the records; an even share is "
                f"{1 / vertex.parallelism:.0%}",
                cure,
                vertex.name,
                vertex.id,
                subtask,
            )


def slow_host(facts: JobFacts) -> Iterator[Cause]:
    """A host where the same work takes longer than elsewhere."""
    figures = facts.figures
    ratios: dict[str, list[float]] = {}  # {host: cost of a record there / median cost elsewhere, per vertex}
    for vertex in figures.graph.vertices.values():
        costs: dict[str, list[float]] = {}
        for subtask in range(vertex.parallelism):
            state = figures.partitions.get(Place(vertex.stage, subtask))
            records = recent_records(facts.figures, vertex, subtask)
            if state is not None and state.address is not None and records >= ENOUGH_RECORDS / vertex.parallelism:
                busy_ms = figures.recent[Key("subtask", vertex.id, subtask)].get(names.BUSY, 0.0)
                costs.setdefault(state.address.host, []).append(busy_ms / records)
        for host, own in costs.items():
            others = [cost for other, each in costs.items() if other != host for cost in each]
            if others and median(others) > 0:
                ratios.setdefault(host, []).append(median(own) / median(others))
    for host, measured in ratios.items():
        if min(measured) >= SLOW_HOST:
            yield Cause(
                "slow-host",
                f"host {host} needs {median(measured):.1f} times as long per record as the other hosts",
                "look at its load, its clock rate and its disk; or take it out of the cluster",
            )


def slow_checkpoints(facts: JobFacts) -> Iterator[Cause]:
    """Checkpoints that take longer than their interval, or fail."""
    last = [each for each in facts.checkpoints if each.status == "completed"][-3:]
    if not last or facts.checkpoint_interval_ms <= 0:
        return
    duration_ms = median(each.duration_ms for each in last)
    if duration_ms <= facts.checkpoint_interval_ms:
        return
    stats = last[-1]
    phases = {
        "writing the state (the slowest partition)": stats.async_ms,
        "encoding the state (processing stands still)": stats.sync_ms,
        "writing the manifest": stats.manifest_ms,
        "the commit of the sinks": stats.commit_ms,
    }
    slowest = max(phases, key=lambda name: phases[name])
    yield Cause(
        "checkpoint-too-slow",
        f"checkpoints take {shown_duration(duration_ms)}, and one is due every "
        f"{shown_duration(facts.checkpoint_interval_ms)}; most of the time goes to {slowest}: "
        f"{shown_duration(phases[slowest])}",
        "a longer execution.checkpointing.interval, or a faster store for what takes long",
    )


def backlog(facts: JobFacts) -> Iterator[Cause]:
    """Sources that deliver faster than the job processes: epochs are full, and event time falls behind the clock."""
    slices = facts.figures.slices
    recent = [each for each in slices if slices[-1].end - each.start <= 3 * BACKLOG_SECONDS] if slices else []
    if not recent or recent[-1].end - recent[0].start < BACKLOG_SECONDS:
        return
    epochs, full = (sum(each.sums.get(name, 0.0) for each in recent) for name in ("epochs", "fullEpochs"))
    lags = [lag for each in recent if (lag := each.gauges.get("watermarkLag")) is not None]
    grows_ms = lags[-1] - lags[0] if len(lags) > 1 else 0.0
    seconds = recent[-1].end - recent[0].start
    if full < FULL_SHARE * epochs or (lags and grows_ms < 0.1 * seconds * 1000):
        return
    vertex = max(facts.figures.graph.vertices.values(), key=lambda each: _busy(facts, each))
    grown = f"; the watermark fell behind by {shown_duration(grows_ms)} in {seconds:.0f} s" if lags else ""
    yield Cause(
        "backlog-grows",
        f"the sources have more than the job reads: {full / epochs:.0%} of the epochs were full{grown}. Busiest: "
        f"'{vertex.name}', {_busy(facts, vertex):.0%} of the time in its busiest partition",
        "more parallelism (headwater rescale), or less work in the busiest operator",
        vertex.name,
        vertex.id,
    )


FINDERS: tuple[Callable[[JobFacts], Iterator[Cause]], ...] = (
    stalled_slots,
    slow_host,
    backlog,
    slow_checkpoints,
    hot_keys,
    skew,
)


def _busy(facts: JobFacts, vertex: Vertex) -> float:
    """Share of the time in which the busiest partition worked."""
    recent, seconds = facts.figures.recent, facts.figures.recent_seconds
    busy = [recent.get(Key("subtask", vertex.id, each), {}).get(names.BUSY, 0.0) for each in range(vertex.parallelism)]
    return max(busy) / seconds / 1000 if seconds else 0.0


def _at(facts: JobFacts, cause: str, place: Place, text: str, cure: str) -> Cause:
    """A finding about the process of a partition, under the name of the first vertex in it."""
    vertex = next(each for each in facts.figures.graph.vertices.values() if each.stage == place.stage)
    where = f"the slot of partition {place.partition} of '{vertex.name}'"
    return Cause(cause, f"{where}: {text}", cure, vertex.name, vertex.id, place.partition)
