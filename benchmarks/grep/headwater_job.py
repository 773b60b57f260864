"""headwater, stateless; `--checkpointing false` turns manifests and two-phase commits off.

Measured from the first record that reaches the map to the end of the sink, after the last commit.
"""

from __future__ import annotations

from benchmarks.headwater_job import CountingSink, headwater_environment, throughput
from benchmarks.workload import GREP_NEEDLE, StampDir, arguments, log_line, report
from headwater.common import WatermarkStrategy
from headwater.datastream import MapFunction, RuntimeContext
from headwater.datastream.connectors.number_seq import NumberSequenceSource


class AsLine(MapFunction):
    def __init__(self, stamps: StampDir) -> None:
        self.stamps = stamps

    def open(self, runtime_context: RuntimeContext) -> None:
        self.stamps.stamp("first")

    def map(self, value: int) -> str:
        return log_line(value)


def main() -> None:
    options = arguments(records=5_000_000, parallelism=2, epoch="2 s", checkpointing="true")
    stamps = StampDir(options.stamps)
    env = headwater_environment(options, **{"headwater.checkpointing.enabled": options.checkpointing})
    source = NumberSequenceSource(0, options.records - 1)
    (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        .map(AsLine(stamps))
        .filter(lambda line: GREP_NEEDLE in line)
        .sink_to(CountingSink(stamps))
    )
    env.execute("grep")
    report(**throughput(stamps, options.records))


if __name__ == "__main__":
    main()
