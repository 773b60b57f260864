"""PyFlink: the same keyed count from a file, process mode, no checkpoints, and what comes out is dropped: no connector
of a broker on either side, which favours it. `--bundle` above 0 tunes it.

Measured from the first record that reaches the first Python function to the end of the last one.
"""

from __future__ import annotations

import os

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import MapFunction
from pyflink.datastream.connectors.file_system import FileSource, StreamFormat

from benchmarks.flink_environment import discarding_sink, flink_environment, larger_bundles
from benchmarks.workload import StampDir, arguments, key_of, report

FILES = 2
"""One for each reader, as the topic has partitions."""


class WithKey(MapFunction):
    def __init__(self, keys: int, stamps: StampDir) -> None:
        self.keys = keys
        self.stamps = stamps
        self.seen = False

    def map(self, value: str) -> tuple[int, int]:
        if not self.seen:
            self.seen = True
            self.stamps.stamp("first")
        return key_of(int(value), self.keys), 1


class Text(MapFunction):
    def __init__(self, stamps: StampDir) -> None:
        self.stamps = stamps

    def map(self, value: tuple[int, int]) -> str:
        return f"{value[0]} {value[1]}"

    def close(self) -> None:
        self.stamps.stamp("last")


def write_files(directory: str, records: int) -> None:
    os.makedirs(directory)
    for part in range(FILES):
        with open(os.path.join(directory, f"part-{part}.txt"), "w", encoding="utf-8") as file:
            file.writelines(f"{i}\n" for i in range(part, records, FILES))


def main() -> None:
    options = arguments(records=200_000, keys=1000, parallelism=2, bundle=0)
    stamps = StampDir(options.stamps)
    directory = os.path.join(os.getcwd(), "numbers")
    write_files(directory, options.records)
    env = flink_environment(options.parallelism, larger_bundles(options.bundle))
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), directory).build()
    pair = Types.TUPLE([Types.LONG(), Types.LONG()])
    (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "in")
        .map(WithKey(options.keys, stamps), output_type=pair)
        .key_by(lambda record: record[0], key_type=Types.LONG())
        .reduce(lambda left, right: (left[0], left[1] + right[1]))
        .map(Text(stamps), output_type=Types.STRING())
        .sink_to(discarding_sink())
    )
    env.execute("kafka")
    seconds = stamps.seconds_between("first", "last")
    report(records=options.records, seconds=seconds, rate=options.records / seconds)


if __name__ == "__main__":
    main()
