"""PyFlink, process mode, defaults; checkpointing off, which favours it. `--bundle` above 0 tunes it.

Measured from the first record that reaches the map to the end of the last filter.
"""

from __future__ import annotations

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import FilterFunction, MapFunction
from pyflink.datastream.connectors.number_seq import NumberSequenceSource

from benchmarks.flink_environment import discarding_sink, flink_environment, larger_bundles
from benchmarks.workload import GREP_NEEDLE, StampDir, arguments, log_line, report


class AsLine(MapFunction):
    def __init__(self, stamps: StampDir) -> None:
        self.stamps = stamps
        self.seen = False

    def map(self, value: int) -> str:
        if not self.seen:
            self.seen = True
            self.stamps.stamp("first")
        return log_line(value)


class Matches(FilterFunction):
    def __init__(self, stamps: StampDir) -> None:
        self.stamps = stamps

    def filter(self, value: str) -> bool:
        return GREP_NEEDLE in value

    def close(self) -> None:
        self.stamps.stamp("last")


def main() -> None:
    options = arguments(records=500_000, parallelism=2, bundle=0)
    stamps = StampDir(options.stamps)
    env = flink_environment(options.parallelism, larger_bundles(options.bundle))
    source = NumberSequenceSource(0, options.records - 1)
    (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
        .map(AsLine(stamps), output_type=Types.STRING())
        .filter(Matches(stamps))
        .sink_to(discarding_sink())
    )
    env.execute("grep")
    seconds = stamps.seconds_between("first", "last")
    report(records=options.records, seconds=seconds, rate=options.records / seconds)


if __name__ == "__main__":
    main()
