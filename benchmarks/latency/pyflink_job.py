"""PyFlink: a socket source, two keyed process functions, a socket sink.

`--bundle-time` is how long Python waits for a bundle to fill, `--buffer-timeout` how long a network buffer waits; both
in ms, 0 for the defaults (1,000 and 100).

A record is seen when it leaves Flink's sink. Checkpointing is off, so nothing waits for a barrier: this favours it.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyflink.common import SimpleStringSchema, Types
from pyflink.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

from benchmarks.flink_environment import flink_environment
from benchmarks.latency.line_sockets import Collector, Feed
from benchmarks.latency.schedule import Schedule, first_key, second_key
from benchmarks.workload import arguments, report


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        self.count.update((self.count.value() or 0) + 1)
        yield value


def main() -> None:
    options = arguments(rate=1000, warm=10.0, measured=20.0, parallelism=2, bundle_time=0, buffer_timeout=0)
    schedule = Schedule(options.rate, options.warm, options.measured)
    settings = {"python.fn-execution.bundle.time": str(options.bundle_time)} if options.bundle_time else {}
    if options.buffer_timeout:
        settings["execution.buffer-timeout.interval"] = f"{options.buffer_timeout} ms"
    env = flink_environment(options.parallelism, settings)
    feed, collector = Feed(schedule), Collector()
    feed.start()
    collector.start()
    lines = DataStream(env._j_stream_execution_environment.socketTextStream("127.0.0.1", feed.port))
    results = (
        lines.key_by(first_key, key_type=Types.LONG())
        .process(Count(), output_type=Types.STRING())
        .key_by(second_key, key_type=Types.LONG())
        .process(Count(), output_type=Types.STRING())
        .map(lambda line: line + "\n", output_type=Types.STRING())
    )
    results._j_data_stream.writeToSocket("127.0.0.1", collector.port, SimpleStringSchema()._j_serialization_schema)
    env.execute("latency")
    report(**schedule.summary(collector.seen))


if __name__ == "__main__":
    main()
