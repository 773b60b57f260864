"""headwater, exactly once: a record is seen when the file that holds it is visible, after its epoch's manifest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.headwater_job import headwater_environment
from benchmarks.latency.feed import Feed
from benchmarks.latency.feed_source import FeedSource
from benchmarks.latency.file_times import TimedFileSink, seen_in
from benchmarks.latency.schedule import Schedule, first_key, second_key
from benchmarks.workload import arguments, report
from headwater.common import Types, WatermarkStrategy
from headwater.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from headwater.datastream.state import ValueStateDescriptor


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        self.count.update((self.count.value() or 0) + 1)
        yield value


def counted(lines: DataStream, stages: int) -> DataStream:
    """The lines after `stages` keyed stages."""
    for stage in range(stages):
        key = (first_key, second_key)[stage % 2]
        lines = lines.key_by(key, key_type=Types.LONG()).process(Count(), output_type=Types.STRING())
    return lines


def main() -> None:
    options = arguments(rate=1000, warm=10.0, measured=20.0, parallelism=2, stages=2, epoch="20 ms", engine="auto")
    schedule = Schedule(options.rate, options.warm, options.measured)
    directory = str(Path.cwd() / "output")
    env = headwater_environment(options)
    with Feed(schedule) as feed:
        lines = env.from_source(FeedSource(feed.port), WatermarkStrategy.no_watermarks(), "lines", Types.STRING())
        counted(lines, options.stages).sink_to(TimedFileSink.in_directory(directory))
        env.execute("latency")
    seen, commits = seen_in(directory)
    summary = schedule.summary(seen)
    if summary["missing"] or summary["twice"]:
        raise SystemExit(f"{summary['missing']} records are missing, {summary['twice']} came twice; expected each once")
    report(**summary, commits=commits)


if __name__ == "__main__":
    main()
