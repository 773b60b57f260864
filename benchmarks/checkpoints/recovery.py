"""A million small keys in two slots: one is killed with `kill -9`, then the job is rescaled to 3 and back to 2.

`recovery_s` is from the kill to the end of the first epoch that had to restore the slot, less the median epoch before;
`rescale_*_s` is for how long the job stood still.
"""

from __future__ import annotations

import os
import signal
import statistics
import time

from benchmarks.headwater_job import CountingSink, headwater_environment
from benchmarks.keyed_count.headwater_job import CountAndSum, WithKey
from benchmarks.workload import StampDir, arguments, report
from headwater.common import WatermarkStrategy
from headwater.datastream.connectors.number_seq import NumberSequenceSource
from headwater.runtime.job.client import LocalJobClient


def main() -> None:
    options = arguments(keys=1_000_000, parallelism=2, epoch="1 s")
    stamps = StampDir(options.stamps)
    env = headwater_environment(options)
    source = NumberSequenceSource(0, 1 << 40)
    (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        .map(WithKey(options.keys, stamps))
        .key_by(lambda record: record[0])
        .process(CountAndSum())
        .sink_to(CountingSink(stamps))
    )
    client = env.execute_async("recovery")
    assert isinstance(client, LocalJobClient)
    _wait(client, lambda shown: shown["state_entries"] >= 0.95 * options.keys)
    durations = [_next_epoch(client) for _ in range(5)]
    before = client.progress()
    victim = before["slots"][0]["pid"]
    killed = time.monotonic()
    os.kill(victim, signal.SIGKILL)
    _wait(client, lambda shown: shown["restored_slots"] > before["restored_slots"])
    recovery = time.monotonic() - killed - statistics.median(durations)
    entries = client.progress()["state_entries"]
    up = client.rescale(3).result()
    _next_epoch(client)
    down = client.rescale(2).result()
    _next_epoch(client)
    client.cancel().result()
    allowed = 1.0 + entries / 2 / 1_000_000
    report(
        recovery_s=max(recovery, 0.0),
        recovery_share=max(recovery, 0.0) / allowed,
        rescale_2_3_s=up,
        rescale_3_2_s=down,
        keys=entries,
        epoch_s=statistics.median(durations),
    )


def _wait(client: LocalJobClient, condition: object) -> None:
    assert callable(condition)
    while not condition(client.progress()):
        if client.get_job_execution_result().done():
            client.get_job_execution_result().result()
        time.sleep(0.01)


def _next_epoch(client: LocalJobClient) -> float:
    epoch, started = client.progress()["epoch"], time.monotonic()
    _wait(client, lambda shown: shown["epoch"] > epoch)
    epoch, started = client.progress()["epoch"], time.monotonic()
    _wait(client, lambda shown: shown["epoch"] > epoch)
    return time.monotonic() - started


if __name__ == "__main__":
    main()
