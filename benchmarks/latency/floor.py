"""What measuring costs: the same feed, reader and sink in one process, with no engine between them.

The shortest latency that the other programs could show.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from benchmarks.latency.feed import Feed
from benchmarks.latency.feed_source import FeedReader
from benchmarks.latency.file_times import TimedFileSink, seen_in
from benchmarks.latency.schedule import Schedule
from benchmarks.workload import arguments, report
from headwater.common.connector import WriterContext

FOREVER_S = 1e6


def copy(port: int, sink: TimedFileSink) -> None:
    """Make each batch of lines visible by itself, until the feed ends."""
    reader, committer = FeedReader(port, 0), sink.create_committer()
    wake, _ = os.pipe()
    batch = 0
    while True:
        reader.wait_readable(time.monotonic() + FOREVER_S, wake)
        lines = reader.read_batch(10_000)
        if lines is None:
            break
        writer = sink.create_writer(WriterContext("floor", "sink", 0, 1, str(batch), batch))
        writer.write_batch(lines, None)
        committer.commit(writer.prepare_commit())
        writer.close()
        batch += 1
    reader.close()
    committer.close()


def main() -> None:
    options = arguments(rate=1000, warm=10.0, measured=20.0)
    schedule = Schedule(options.rate, options.warm, options.measured)
    directory = str(Path.cwd() / "output")
    with Feed(schedule) as feed:
        copy(feed.port, TimedFileSink.in_directory(directory))
    seen, commits = seen_in(directory)
    report(**schedule.summary(seen), commits=commits)


if __name__ == "__main__":
    main()
