"""A job that has nothing to do: processor time of all its processes while its source is open and silent.

It first gets records for a few seconds, so that its slots are there and its workers warm.
"""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.checkpoints.waiting import wait_until
from benchmarks.harness.cpu import cpu_by_kind, mark_processes
from benchmarks.headwater_job import headwater_environment
from benchmarks.latency.feed import Feed
from benchmarks.latency.feed_source import FeedSource
from benchmarks.latency.file_times import TimedFileSink
from benchmarks.latency.headwater_job import counted
from benchmarks.latency.schedule import Schedule
from benchmarks.workload import arguments, report
from headwater.common import Types, WatermarkStrategy
from headwater.runtime.job.handle import LocalJobClient


def main() -> None:
    options = arguments(engine="auto", epoch="20 ms", parallelism=2, rate=100, busy=3.0, settle=5.0, measured=30.0)
    schedule = Schedule(options.rate, 0.0, options.busy)
    with Feed(schedule, hold=True) as feed:
        mark = mark_processes()
        env = headwater_environment(options)
        source = FeedSource(feed.port, bounded=False)
        lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines", Types.STRING())
        counted(lines, 2).sink_to(TimedFileSink.in_directory(str(Path.cwd() / "output")))
        client = env.execute_async("idle")
        assert isinstance(client, LocalJobClient)
        wait_until(client, lambda: client.progress()["records_in"] >= schedule.records)
        time.sleep(options.settle)
        slots = {slot["pid"] for slot in client.progress()["slots"]}
        before, epoch, started = cpu_by_kind(mark, slots), client.progress()["epoch"], time.monotonic()
        time.sleep(options.measured)
        seconds = time.monotonic() - started
        spent = {kind: 100 * (after - before[kind]) / seconds for kind, after in cpu_by_kind(mark, slots).items()}
        epochs = client.progress()["epoch"] - epoch
        client.cancel().result()
    report(percent=sum(spent.values()), **spent, epochs_per_second=epochs / seconds)


if __name__ == "__main__":
    main()
