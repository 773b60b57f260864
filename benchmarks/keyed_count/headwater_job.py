"""headwater, checkpointing on: every `--interval` a delta of the state and a manifest are written before outputs count.

Measured from the first record that reaches the first Python function to the end of the sink, after the
last commit. The slots start and stop within it.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.headwater_job import CountingSink, headwater_environment, throughput
from benchmarks.workload import EMIT_EVERY, StampDir, arguments, key_of, report
from headwater.common import WatermarkStrategy
from headwater.datastream import KeyedProcessFunction, MapFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.connectors.number_seq import NumberSequenceSource
from headwater.datastream.state import ValueStateDescriptor


class WithKey(MapFunction):
    def __init__(self, keys: int, stamps: StampDir) -> None:
        self.keys = keys
        self.stamps = stamps

    def open(self, runtime_context: RuntimeContext) -> None:
        self.stamps.stamp("first")

    def map(self, value: int) -> tuple[int, int]:
        return key_of(value, self.keys), value


class CountAndSum(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.totals = runtime_context.get_state(ValueStateDescriptor("totals"))

    def process_element(
        self, value: tuple[int, int], ctx: KeyedProcessFunction.Context
    ) -> Iterator[tuple[int, int, int]]:
        count, total = self.totals.value() or (0, 0)
        count += 1
        total += value[1]
        self.totals.update((count, total))
        if count % EMIT_EVERY == 0:
            yield value[0], count, total


def count_and_sum(env: StreamExecutionEnvironment, records: int, keys: int, stamps: StampDir) -> None:
    """The job, in `env`. It stamps `first` and what its sink stamps."""
    (
        env.from_source(NumberSequenceSource(0, records - 1), WatermarkStrategy.no_watermarks(), "numbers")
        .map(WithKey(keys, stamps))
        .key_by(lambda record: record[0])
        .process(CountAndSum())
        .sink_to(CountingSink(stamps))
    )


def main() -> None:
    options = arguments(
        records=2_000_000, keys=1000, parallelism=2, epoch="2 s", interval="10 s", backend="hashmap", engine="auto"
    )
    stamps = StampDir(options.stamps)
    env = headwater_environment(
        options,
        **{"execution.checkpointing.interval": options.interval, "state.backend.type": options.backend},
    )
    count_and_sum(env, options.records, options.keys, stamps)
    env.execute("keyed_count")
    report(**throughput(stamps, options.records))


if __name__ == "__main__":
    main()
