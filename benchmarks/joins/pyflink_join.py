"""PyFlink, which has neither join: the same pairs from a co-process function with map state and timers.

Process mode, hashmap state; checkpointing off. `--bundle` above 0 tunes it. Measured from the first record that reaches
the first Python function to the end of the last co-process function; a record of either stream counts as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import DataStream, KeyedCoProcessFunction, RuntimeContext
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.datastream.state import MapStateDescriptor

from benchmarks.flink_environment import discarding_sink, flink_environment, larger_bundles
from benchmarks.windows.pyflink_tumbling import EventTime, Keyed, WithKey
from benchmarks.workload import StampDir, arguments, report

SPAN_MS = 10_000
Pair = tuple[int, int, int]


class Buffers(KeyedCoProcessFunction):
    """One map state per stream: {time: the numbers of the records with it}."""

    def __init__(self, stamps: StampDir) -> None:
        self.stamps = stamps

    def open(self, runtime_context: RuntimeContext) -> None:
        kept = Types.LIST(Types.LONG())
        self.left = runtime_context.get_map_state(MapStateDescriptor("left", Types.LONG(), kept))
        self.right = runtime_context.get_map_state(MapStateDescriptor("right", Types.LONG(), kept))

    def close(self) -> None:
        self.stamps.stamp("last")


class JoinInWindow(Buffers):
    def process_element1(self, value: Keyed, ctx: Any) -> None:
        self.keep(self.left, value, ctx)

    def process_element2(self, value: Keyed, ctx: Any) -> None:
        self.keep(self.right, value, ctx)

    def keep(self, state: Any, value: Keyed, ctx: Any) -> None:
        end = (ctx.timestamp() // SPAN_MS + 1) * SPAN_MS - 1
        state.put(end, [*(state.get(end) or []), value[1]])
        ctx.timer_service().register_event_time_timer(end)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Pair]:
        key, lefts, rights = ctx.get_current_key(), self.left.get(timestamp), self.right.get(timestamp)
        for left in lefts or []:
            for right in rights or []:
                yield key, left, right
        self.left.remove(timestamp)
        self.right.remove(timestamp)


class JoinInInterval(Buffers):
    def process_element1(self, value: Keyed, ctx: Any) -> Iterator[Pair]:
        timestamp = ctx.timestamp()
        self.left.put(timestamp, [*(self.left.get(timestamp) or []), value[1]])
        ctx.timer_service().register_event_time_timer(timestamp + SPAN_MS)
        for partner_timestamp, rights in list(self.right.items()):
            if timestamp <= partner_timestamp <= timestamp + SPAN_MS:
                for right in rights:
                    yield value[0], value[1], right

    def process_element2(self, value: Keyed, ctx: Any) -> Iterator[Pair]:
        timestamp = ctx.timestamp()
        self.right.put(timestamp, [*(self.right.get(timestamp) or []), value[1]])
        ctx.timer_service().register_event_time_timer(timestamp)
        for partner_timestamp, lefts in list(self.left.items()):
            if partner_timestamp <= timestamp <= partner_timestamp + SPAN_MS:
                for left in lefts:
                    yield value[0], left, value[1]

    def on_timer(self, timestamp: int, ctx: Any) -> list[Pair]:
        self.left.remove(timestamp - SPAN_MS)
        self.right.remove(timestamp)
        return []  # PyFlink iterates over it


def main() -> None:
    options = arguments(kind="interval", records=40_000, keys=5_000, per_second=500, parallelism=2, bundle=0)
    stamps = StampDir(options.stamps)
    env = flink_environment(options.parallelism, larger_bundles(options.bundle))
    each = options.records // 2  # per stream
    watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        EventTime(each // 2, options.per_second)
    )
    pair = Types.TUPLE([Types.LONG(), Types.LONG()])

    def stream(name: str, first: int) -> DataStream:
        numbers = NumberSequenceSource(first, first + each - 1)
        return (
            env.from_source(numbers, WatermarkStrategy.no_watermarks(), name, Types.LONG())
            .map(WithKey(options.keys, stamps), output_type=pair)
            .assign_timestamps_and_watermarks(watermarks)
        )

    def keyed(name: str, first: int) -> DataStream:
        return stream(name, first).key_by(lambda record: record[0], key_type=Types.LONG())

    function = JoinInWindow(stamps) if options.kind == "window" else JoinInInterval(stamps)
    (
        keyed("left", 0)
        .connect(keyed("right", each))
        .process(function, output_type=Types.TUPLE([Types.LONG()] * 3))
        .sink_to(discarding_sink())
    )
    env.execute(f"{options.kind}_join")
    seconds = stamps.seconds_between("first", "last")
    report(records=options.records, seconds=seconds, rate=options.records / seconds)


if __name__ == "__main__":
    main()
