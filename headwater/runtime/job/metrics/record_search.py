"""Finds where the records stop that a sink waits for. Pure.

It follows them from the sources down: to a source that is silent, or to an operator that takes records and emits none.
If that one waits for event time, the watermark is followed up to the split that holds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from headwater.common.ids import MIN_WATERMARK, Place
from headwater.common.watermark_strategy import WatermarkKind, WatermarkStrategy
from headwater.graph.plan import OperatorSpec, SourceSpec
from headwater.operators.filter import FilterOperator, KeyedFilterOperator
from headwater.operators.timestamps import TimestampsAndWatermarksOperator
from headwater.runtime.job.metrics import names
from headwater.runtime.job.metrics.channels import Channel, channels_into, silent_since
from headwater.runtime.job.metrics.epoch_counts import Table
from headwater.runtime.job.metrics.job_facts import Cause, JobFacts, shown_duration, shown_time
from headwater.runtime.job.metrics.job_metrics import Flow
from headwater.runtime.job.vertices import Vertex
from headwater.time.watermark_keys import at_input

QUIET_MS = 10_000
"""A sink, a source or a split without records for so long is silent."""


class RecordSearch:
    """Follows the records of one job."""

    def __init__(self, facts: JobFacts) -> None:
        self._facts = facts
        self._figures = facts.figures
        self._graph = facts.figures.graph
        plan = self._graph.plan
        self._specs: dict[int, SourceSpec | OperatorSpec] = {source.id: source for source in plan.sources}
        self._specs |= {each.id: each for stage in plan.stages for each in stage.operators}

    def quiet_sinks(self) -> list[OperatorSpec]:
        """The sinks that have got nothing lately."""
        specs = [each for each in self._specs.values() if isinstance(each, OperatorSpec) and each.sink is not None]
        return [each for each in specs if self._silent(self._flow(each).last_in_ms)]

    def _silent(self, last_ms: int | None) -> bool:
        """Nothing has come lately. Before the first record, time counts from the start of the job."""
        return self._figures.now_ms - (self._figures.started_ms if last_ms is None else last_ms) > QUIET_MS

    def _flow(self, spec: OperatorSpec | SourceSpec) -> Flow:
        return self._figures.flows[spec.uid]

    def explain_sink(self, sink: OperatorSpec) -> Iterator[Cause]:
        """Say where the records stop that the sink waits for."""
        since = self._flow(sink).last_in_ms
        reach = _known(since)
        upstream = self._upstream(sink)
        takers = [
            each
            for each in upstream
            if isinstance(each, OperatorSpec)
            and _known(self._flow(each).last_in_ms) > reach
            and _known(self._flow(each).last_out_ms) <= reach
        ]
        for operator in takers:
            yield from self._explain_operator(operator, reach)
        if not takers:
            for source in (each for each in upstream if isinstance(each, SourceSpec)):
                yield self._explain_source(source)

    def _upstream(self, sink: OperatorSpec) -> list[SourceSpec | OperatorSpec]:
        """All sources and operators before the sink, in topological order."""
        wanted, pending = set(), [sink]
        while pending:
            for each in pending.pop().inputs:
                if each.upstream not in wanted:
                    wanted.add(each.upstream)
                    spec = self._specs[each.upstream]
                    if isinstance(spec, OperatorSpec):
                        pending.append(spec)
        return [spec for node, spec in self._specs.items() if node in wanted]

    # --- an operator that takes records and emits none

    def _explain_operator(self, operator: OperatorSpec, reach: int) -> Iterator[Cause]:
        name, vertex = operator.name, self._vertex_of(operator)
        records = _count(self._figures.totals, operator.uid, names.RECORDS_IN)
        if self._all_late(operator):
            late = _count(self._figures.totals, operator.uid, names.LATE_DROPPED)
            yield Cause(
                "all-late",
                f"all records that reach '{name}' are late ({late:,.0f} dropped): their windows have ended, as the "
                f"watermark is at {shown_time(self._watermark(operator, vertex)[1])}",
                "allow more out-of-orderness or lateness, or correct the timestamp assigner: one record of the future "
                "is enough to make all others late",
                name,
                vertex.id,
            )
            return
        if _made_by(operator, FilterOperator, KeyedFilterOperator):
            yield Cause(
                "filter-passes-nothing",
                f"{records:,.0f} records came to the filter '{name}', and none has passed"
                + (f" since {shown_time(reach)}" if reach >= 0 else ""),
                "look at its condition, and at what comes in",
                name,
                vertex.id,
            )
            return
        feeding = [self._specs[each.upstream] for each in operator.inputs]
        silent = [each for each in feeding if _known(self._flow(each).last_out_ms) <= reach]
        if silent and len(operator.inputs) > 1:
            for other in silent:
                yield Cause(
                    "input-silent",
                    f"'{name}' has several inputs, and from '{other.name}' nothing comes",
                    f"look at '{other.name}'; if it may be silent for long, give its source with_idleness(...)",
                    name,
                    vertex.id,
                )
        timed = [
            place
            for place, state in self._figures.partitions.items()
            if place.stage == operator.stage and operator.uid in state.event_timers
        ]
        if timed:
            yield self._explain_watermark(operator, vertex)
            return
        timers = [
            state.next_timer_ms
            for place, state in self._figures.partitions.items()
            if place.stage == operator.stage and state.next_timer_ms is not None
        ]
        if timers and operator.needs_slot:
            yield Cause(
                "timer-in-the-future",
                f"'{name}' emits when its next timer or window of processing time is due: "
                f"{shown_time(min(timers))}, in {shown_duration(max(0, min(timers) - self._figures.now_ms))}",
                "wait, or use shorter windows or timers",
                name,
                vertex.id,
            )
        elif not silent or len(operator.inputs) == 1:
            yield Cause(
                "emits-nothing",
                f"{records:,.0f} records came to '{name}', and its function has emitted nothing",
                "look at the function: which condition must hold before it emits?",
                name,
                vertex.id,
            )

    def _all_late(self, operator: OperatorSpec) -> bool:
        for table in (self._figures.totals, self._figures.recent):
            records = _count(table, operator.uid, names.RECORDS_IN)
            if records and _count(table, operator.uid, names.LATE_DROPPED) >= records:
                return True
        return False

    def _vertex_of(self, spec: OperatorSpec | SourceSpec) -> Vertex:
        return self._graph.vertices[self._graph.vertex_of[spec.uid]]

    # --- a watermark that does not pass

    def _watermark(self, operator: OperatorSpec, vertex: Vertex) -> tuple[int, int, int | None]:
        """Return (partition, watermark, next event-time timer) of the partition that is furthest behind."""
        found = [
            (state.watermarks.get(at_input(vertex.head), MIN_WATERMARK), place.partition, state.event_timers)
            for place, state in self._figures.partitions.items()
            if place.stage == operator.stage
        ]
        having = [each for each in found if operator.uid in each[2]] or found
        watermark, partition, timers = min(having, key=lambda each: each[:2], default=(MIN_WATERMARK, 0, {}))
        return partition, watermark, timers.get(operator.uid)

    def _explain_watermark(self, operator: OperatorSpec, vertex: Vertex) -> Cause:
        partition, watermark, due = self._watermark(operator, vertex)
        assert due is not None
        make = partial(Cause, operator=operator.name, vertex=vertex.id, subtask=partition)
        waits = (
            f"partition {partition} of '{operator.name}' emits when event time reaches {shown_time(due)} (the end of "
            f"its next window, or its next timer); its watermark is at {shown_time(watermark)}"
        )
        channel = self._holding_channel(vertex)
        if channel is None:
            return make("source-idle", f"{waits}, and no source delivers", "send later records, or end the source")
        if channel.split is None:
            return make(
                "watermark-stuck",
                f"{waits}, because {channel.name} is at {shown_time(channel.watermark)}",
                "look at the timestamps and watermarks that it assigns",
            )
        source = self._specs[channel.split[0]]
        strategy = self._strategy(source)
        split = self._figures.splits[channel.split]
        since_ms = silent_since(split)
        others = [each for each in channels_into_sources(self._facts) if each.split != channel.split and not each.idle]
        if watermark == MIN_WATERMARK and (strategy is None or strategy.kind is WatermarkKind.NONE):
            return make(
                "no-watermarks",
                f"{waits}, because source '{source.name}' emits no watermarks",
                "give it a WatermarkStrategy, such as for_bounded_out_of_orderness(...).with_timestamp_assigner(...)",
            )
        if not self._silent(since_ms):
            left = shown_duration(due - watermark) if watermark > MIN_WATERMARK else "all"
            return make(
                "window-not-over",
                f"{waits}: {left} of event time to go. {channel.name} holds it, and delivers",
                "wait, or use shorter windows",
            )
        silent = f"{channel.name} is silent since {shown_time(since_ms)}"
        if any(each.watermark > channel.watermark for each in others):
            return make(
                "watermark-stuck",
                f"{waits}, and is stuck because {silent}; other splits are at "
                f"{shown_time(max(each.watermark for each in others))}",
                _idleness_cure(strategy, since_ms),
            )
        return make(
            "source-idle",
            f"{waits}, and stays there, because {silent}, and so are all others",
            "a record with a later timestamp moves it; the window ends when one comes, or when the source ends",
        )

    def _holding_channel(self, vertex: Vertex) -> Channel | None:
        """Follow the lowest watermark up to the split, or to the operator, that holds it."""
        for _ in self._graph.vertices:
            active = [each for each in channels_into(self._figures, vertex) if not each.idle]
            if not active:
                return None
            lowest = active[0]
            if lowest.partition is None:
                return lowest
            vertex = self._graph.vertices[self._graph.vertex_of[lowest.producer]]
            if self._input_watermark(vertex, lowest.partition) > lowest.watermark:
                return lowest  # it does not hand on what it gets: it makes watermarks of its own
        return None

    def _input_watermark(self, vertex: Vertex, place: Place) -> int:
        return self._figures.partitions[place].watermarks.get(at_input(vertex.head), MIN_WATERMARK)

    def _strategy(self, source: SourceSpec | OperatorSpec) -> WatermarkStrategy | None:
        """The strategy that makes the watermarks of a source's splits."""
        for each in self._specs.values():
            if (
                not isinstance(each, OperatorSpec)
                or each.stage > 0
                or not _made_by(each, TimestampsAndWatermarksOperator)
            ):
                continue
            if source in self._upstream(each):
                strategy: WatermarkStrategy = each.factory.args[0]  # type: ignore[attr-defined]
                return strategy
        return None

    # --- sources

    def empty_sources(self) -> list[Cause]:
        """Sources in which there is nothing to read: without any split, a job runs no epoch."""
        specs = [each for each in self._specs.values() if isinstance(each, SourceSpec)]
        return [cause for each in specs if (cause := self._explain_source(each)).cause == "no-splits"]

    def _explain_source(self, source: SourceSpec) -> Cause:
        state = self._facts.sources.get(source.id)
        vertex = self._vertex_of(source).id
        if state is not None and state.exhausted:
            text = f"source '{source.name}' was read to its end"
            return Cause("source-ended", text, "nothing more will come from it", source.name, vertex)
        if state is not None and state.splits == 0:
            text = f"source '{source.name}' has found nothing to read yet: no file, no partition, no split"
            return Cause("no-splits", text, "look at its path or topic, and at its permissions", source.name, vertex)
        last = self._flow(source).last_out_ms
        text = f"source '{source.name}' is idle: " + (
            f"no record since {shown_time(last)}" if last is not None else "not one record has come"
        )
        return Cause("source-idle", text, "look at what writes to it", source.name, vertex)


def channels_into_sources(facts: JobFacts) -> list[Channel]:
    """All splits of the job, each with the highest watermark that it has anywhere in stage 0."""
    return [
        Channel(
            "",
            split_id,
            max(split.watermarks.values(), default=MIN_WATERMARK),
            split.idle,
            silent_since(split),
            split=(source, split_id),
        )
        for (source, split_id), split in facts.figures.splits.items()
    ]


def _idleness_cure(strategy: WatermarkStrategy | None, since_ms: int) -> str:
    if strategy is not None and strategy.idle_timeout_ms is not None:
        until = shown_time(since_ms + strategy.idle_timeout_ms)
        return f"the split counts as idle from {until} on (with_idleness), then the others go on without it"
    return "give the WatermarkStrategy with_idleness(...), so that a silent split does not hold up the others"


def _known(ms: int | None) -> int:
    """A processing time that may be unknown, as a number before all others."""
    return -1 if ms is None else ms


def _made_by(operator: OperatorSpec, *classes: type) -> bool:
    return getattr(operator.factory, "func", None) in classes


def _count(table: Table, uid: str, name: str) -> float:
    return sum(counts.get(name, 0.0) for key, counts in table.items() if key.kind == "operator" and key.id == uid)
