"""What the disk and measuring cost: the same feed, reader and sink in one process, with no engine between them.

Without `--slots`, each batch of lines is made visible by itself: the shortest latency that any program could show. With
them, each batch is an epoch as headwater persists it, with nothing between the writes: a snapshot per slot and the
sink's files side by side, then the manifest, then the renames. The shortest that is exactly once in this way.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.latency.feed import Feed
from benchmarks.latency.feed_source import FeedReader
from benchmarks.latency.file_times import TimedFileSink, seen_in
from benchmarks.latency.schedule import Schedule
from benchmarks.workload import arguments, report
from headwater.checkpoint.storage.local import LocalStorage
from headwater.common.connector import SinkWriter, WriterContext

FOREVER_S = 1e6
SNAPSHOT = b"s" * 500
MANIFEST = b"m" * 1500
"""About as much as in the latency job."""


def batches(port: int) -> Iterator[list[str]]:
    """The lines of the feed, as they arrive, until it ends."""
    reader = FeedReader(port, 0)
    wake, _ = os.pipe()
    while True:
        reader.wait_readable(time.monotonic() + FOREVER_S, wake)
        lines = reader.read_batch(10_000)
        if lines is None:
            break
        yield lines
    reader.close()


def copy(port: int, sink: TimedFileSink) -> None:
    """Make each batch of lines visible by itself."""
    committer = sink.create_committer()
    for epoch, lines in enumerate(batches(port)):
        writer = _written(sink, epoch, lines, 0, 1)
        committables = writer.prepare_commit()
        writer.make_durable()
        committer.commit(committables)
        writer.close()
    committer.close()


def persist(port: int, sink: TimedFileSink, checkpoints: Path, slots: int, parallelism: int) -> None:
    """Make each batch of lines visible with the writes of an epoch."""
    storage, committer = LocalStorage(checkpoints), sink.create_committer()
    storage.create(("snapshots", "manifests"))

    def write_snapshot(epoch: int, slot: int) -> None:
        with storage.write(f"snapshots/{epoch}-{slot}", unnamed=True) as file:
            file.write(SNAPSHOT)

    with ThreadPoolExecutor(slots + parallelism) as threads:
        for epoch, lines in enumerate(batches(port)):
            work = [threads.submit(write_snapshot, epoch, slot) for slot in range(slots)]
            writers = [
                _written(sink, epoch, lines[part::parallelism], part, parallelism) for part in range(parallelism)
            ]
            committables = [each for writer in writers for each in writer.prepare_commit()]
            work += [threads.submit(writer.make_durable) for writer in writers]
            for future in work:
                future.result()
            storage.write_once(f"manifests/{epoch}", MANIFEST)
            committer.commit(committables)
            for writer in writers:
                writer.close()
    committer.close()


def _written(sink: TimedFileSink, epoch: int, lines: list[str], partition: int, parallelism: int) -> SinkWriter:
    writer = sink.create_writer(WriterContext("floor", "sink", partition, parallelism, str(epoch), epoch))
    if lines:
        writer.write_batch(lines, None)
    return writer


def main() -> None:
    options = arguments(rate=1000, warm=10.0, measured=20.0, slots=0, parallelism=1)
    schedule = Schedule(options.rate, options.warm, options.measured)
    directory = str(Path.cwd() / "output")
    sink = TimedFileSink.in_directory(directory)
    with Feed(schedule) as feed:
        if options.slots:
            persist(feed.port, sink, Path.cwd() / "checkpoints", options.slots, options.parallelism)
        else:
            copy(feed.port, sink)
    seen, commits = seen_in(directory)
    report(**schedule.summary(seen), commits=commits)


if __name__ == "__main__":
    main()
