"""A million small keys in two slots: one is killed with `kill -9`, then the job is rescaled to 3 and back to 2.

`recovery_s` is from the kill to the end of the first epoch that had to restore the slot, less the median epoch before;
`rescale_*_s` is from the request to the end of the first epoch at the new parallelism, its state restored and its
records processed; `still_*_s` is the part of it in which no epoch was under way at the old one.
"""

from __future__ import annotations

import os
import signal
import statistics
import time

from benchmarks.checkpoints.waiting import wait_until
from benchmarks.headwater_job import headwater_environment
from benchmarks.keyed_count.headwater_job import count_and_sum
from benchmarks.workload import StampDir, arguments, report
from headwater.runtime.job.handle import LocalJobClient


def main() -> None:
    options = arguments(keys=1_000_000, parallelism=2, epoch="1 s")
    env = headwater_environment(options)
    count_and_sum(env, 1 << 40, options.keys, StampDir(options.stamps))
    client = env.execute_async("recovery")
    assert isinstance(client, LocalJobClient)
    wait_until(client, lambda: client.progress()["state_entries"] >= 0.95 * options.keys)
    durations = [_next_epoch(client) for _ in range(5)]
    recovery = _kill_a_slot(client) - statistics.median(durations)
    entries = client.progress()["state_entries"]
    up_s, still_up_s = _rescale(client, 3)
    down_s, still_down_s = _rescale(client, 2)
    client.cancel().result()
    allowed = 1.0 + entries / 2 / 1_000_000
    report(
        recovery_s=max(recovery, 0.0),
        recovery_share=max(recovery, 0.0) / allowed,
        rescale_2_3_s=up_s,
        rescale_3_2_s=down_s,
        still_2_3_s=still_up_s,
        still_3_2_s=still_down_s,
        keys=entries,
        epoch_s=statistics.median(durations),
    )


def _kill_a_slot(client: LocalJobClient) -> float:
    """Seconds until the end of the epoch that restored it."""
    before = client.progress()
    killed = time.monotonic()
    os.kill(before["slots"][0]["pid"], signal.SIGKILL)
    wait_until(client, lambda: client.progress()["restored_slots"] > before["restored_slots"])
    return time.monotonic() - killed


def _rescale(client: LocalJobClient, parallelism: int) -> tuple[float, float]:
    """Seconds since the request, and those for which the job stood still."""
    asked = time.monotonic()
    still = client.rescale(parallelism).result()
    seconds = time.monotonic() - asked
    _next_epoch(client)
    return seconds, still


def _next_epoch(client: LocalJobClient) -> float:
    """Wait for the end of an epoch, and say how long the one after it takes."""
    started = 0.0
    for _ in range(2):
        epoch, started = client.progress()["epoch"], time.monotonic()
        wait_until(client, lambda epoch=epoch: client.progress()["epoch"] > epoch)
    return time.monotonic() - started


if __name__ == "__main__":
    main()
