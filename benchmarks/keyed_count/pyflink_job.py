"""PyFlink, process mode, state in `--backend` hashmap or rocksdb; checkpointing off, which favours it.

`--bundle` above 0 tunes it.

By default each bundle (1,000 records) ends with a round trip to the JVM per key that it touched; larger bundles touch
a key more often per trip, at the price of latency.

Measured from the first record that reaches the first Python function to the end of the last keyed function. The JVM,
the mini cluster and the Python workers are up by then.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import KeyedProcessFunction, MapFunction, RuntimeContext
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.datastream.state import ValueStateDescriptor

from benchmarks.flink_environment import discarding_sink, flink_environment, larger_bundles
from benchmarks.workload import EMIT_EVERY, StampDir, arguments, key_of, report


class WithKey(MapFunction):
    def __init__(self, keys: int, stamps: StampDir) -> None:
        self.keys = keys
        self.stamps = stamps
        self.seen = False

    def map(self, value: int) -> tuple[int, int]:
        if not self.seen:
            self.seen = True
            self.stamps.stamp("first")
        return key_of(value, self.keys), value


class CountAndSum(KeyedProcessFunction):
    def __init__(self, stamps: StampDir) -> None:
        self.stamps = stamps

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("totals", Types.TUPLE([Types.LONG(), Types.LONG()]))
        self.totals = runtime_context.get_state(descriptor)

    def process_element(
        self, value: tuple[int, int], ctx: KeyedProcessFunction.Context
    ) -> Iterator[tuple[int, int, int]]:
        count, total = self.totals.value() or (0, 0)
        count += 1
        total += value[1]
        self.totals.update((count, total))
        if count % EMIT_EVERY == 0:
            yield value[0], count, total

    def close(self) -> None:
        self.stamps.stamp("last")


def main() -> None:
    options = arguments(records=300_000, keys=1000, parallelism=2, bundle=0, backend="hashmap")
    stamps = StampDir(options.stamps)
    settings = {**larger_bundles(options.bundle), "state.backend.type": options.backend}
    env = flink_environment(options.parallelism, settings)
    pair = Types.TUPLE([Types.LONG(), Types.LONG()])
    source = NumberSequenceSource(0, options.records - 1)
    (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
        .map(WithKey(options.keys, stamps), output_type=pair)
        .key_by(lambda record: record[0], key_type=Types.LONG())
        .process(CountAndSum(stamps), output_type=Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()]))
        .sink_to(discarding_sink())
    )
    env.execute("keyed_count")
    seconds = stamps.seconds_between("first", "last")
    report(records=options.records, seconds=seconds, rate=options.records / seconds)


if __name__ == "__main__":
    main()
