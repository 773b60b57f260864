"""A small tuple of state for each of many keys, each key touched four times; what do the slots hold then?

The harness samples the processes that ran `open`. The `loaded` stamp comes in the second half of the records, when
every key is there: the last sample after it is the steady value, the highest of all is the peak.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.headwater_job import CountingSink, headwater_environment, throughput
from benchmarks.workload import StampDir, arguments, report
from headwater.common import Types, WatermarkStrategy
from headwater.datastream import KeyedProcessFunction, MapFunction, RuntimeContext
from headwater.datastream.connectors.number_seq import NumberSequenceSource
from headwater.datastream.state import ValueStateDescriptor


class WithKey(MapFunction):
    def __init__(self, keys: int, stamps: StampDir) -> None:
        self.keys = keys
        self.stamps = stamps

    def open(self, runtime_context: RuntimeContext) -> None:
        self.stamps.stamp("first")

    def map(self, value: int) -> tuple[int, int]:
        return value % self.keys, value


class CountAndSum(KeyedProcessFunction):
    def __init__(self, loaded_from: int, stamps: StampDir) -> None:
        self.loaded_from = loaded_from
        self.stamps = stamps

    def open(self, runtime_context: RuntimeContext) -> None:
        self.stamps.stamp("slot")
        self.totals = runtime_context.get_state(
            ValueStateDescriptor("totals", Types.TUPLE([Types.LONG(), Types.LONG()]))
        )

    def process_element(self, value: tuple[int, int], ctx: KeyedProcessFunction.Context) -> Iterator[tuple[int, int]]:
        count, total = self.totals.value() or (0, 0)
        self.totals.update((count + 1, total + value[1]))
        if value[1] == self.loaded_from:
            self.stamps.stamp("loaded")
            yield value


def main() -> None:
    options = arguments(keys=1_000_000, parallelism=2, epoch="1 s")
    stamps = StampDir(options.stamps)
    records = 4 * options.keys
    env = headwater_environment(options)
    # At parallelism 2 the two halves are read side by side, and each goes through all keys twice.
    source = NumberSequenceSource(0, records - 1)
    (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
        .map(WithKey(options.keys, stamps), output_type=Types.TUPLE([Types.LONG(), Types.LONG()]))
        .key_by(lambda record: record[0], key_type=Types.LONG())
        .process(CountAndSum(options.keys + options.keys // 2, stamps), output_type=Types.TUPLE([Types.LONG()] * 2))
        .sink_to(CountingSink(stamps))
    )
    env.execute("million_keys")
    report(**throughput(stamps, records), keys=options.keys)


if __name__ == "__main__":
    main()
