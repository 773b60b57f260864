"""What timers cost, without a job around them: `python -m benchmarks.timers`.

Timers of as many int keys, at random times, are registered in epochs of a fixed number, each with its delta and commit;
then they fire, as many per epoch, until none is left. Each row runs in a process of its own, so that its memory can be
told: it is what the process grew by. Times are CPU time of the whole process, RocksDB's threads included.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import psutil

from headwater.state.backends import make_keyed_backend
from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.rocksdb.options import DEFAULT_TIMERS_IN_MEMORY, RocksDBOptions

MAX_PARALLELISM = 128
ROWS = ("heap", "rocksdb, timers on the heap", "rocksdb")


@dataclass(frozen=True)
class Measured:
    register_seconds: float
    """CPU time, ends of epochs included."""
    fire_seconds: float
    grown_mib: float
    """With all timers there."""
    native_seconds: float
    """By the clock, for a native checkpoint with all timers there."""
    peak_mib: float


def measure(row: str, timers: int, per_epoch: int, memory_mib: int) -> Measured:
    """Run it in this process."""
    gc.disable()  # as in a slot
    directory = Path(tempfile.mkdtemp(prefix="headwater-timers-"))
    try:
        process = psutil.Process()
        before = process.memory_info().rss
        in_memory = DEFAULT_TIMERS_IN_MEMORY if row == "rocksdb" else None
        options = RocksDBOptions(memory_mib << 20, directory, timers_in_memory=in_memory)
        kind, groups = row.split(",")[0], range(MAX_PARALLELISM)
        backend: Any = make_keyed_backend(kind, "timers", MAX_PARALLELISM, groups, options)
        dice = random.Random(7)

        def register(start: int) -> None:
            for key in range(start, min(start + per_epoch, timers)):
                backend.event_timers.register(dice.randrange(1_000_000_000), key)

        def fire(_: int) -> None:
            for _timer in islice(backend.event_timers.pop_due(1_000_000_000), per_epoch):
                pass

        register_seconds = _epochs(backend, register, timers, per_epoch)
        grown = process.memory_info().rss - before
        started = time.perf_counter()
        if kind == "rocksdb":
            backend.native_checkpoint(directory / "checkpoint")
        native_seconds = time.perf_counter() - started
        fire_seconds = _epochs(backend, fire, timers, per_epoch)
        assert backend.event_timers.peek() is None
        if kind == "rocksdb":
            backend.close()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
        return Measured(register_seconds, fire_seconds, grown / 2**20, native_seconds, peak / 2**20)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _epochs(backend: KeyedStateBackend, use: Callable[[int], None], timers: int, per_epoch: int) -> float:
    started = time.process_time()
    for start in range(0, timers, per_epoch):
        backend.begin_epoch()
        use(start)
        backend.delta_sections()
        backend.commit_epoch(cut=True)
        backend.checkpoint_completed()
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--timers", type=int, default=5_000_000)
    parser.add_argument("--per-epoch", type=int, default=50_000)
    parser.add_argument("--memory-mib", type=int, default=64, help="of RocksDB")
    chosen = parser.parse_args()
    print("| backend | registering, ns | firing, ns | grown, MiB | native checkpoint, s | peak, MiB |")
    print("|---|---|---|---|---|---|")
    for row in ROWS:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found = pool.apply(measure, (row, chosen.timers, chosen.per_epoch, chosen.memory_mib))
        each = 1e9 / chosen.timers
        print(
            f"| {row} | {found.register_seconds * each:,.0f} | {found.fire_seconds * each:,.0f} "
            f"| {found.grown_mib:,.0f} | {found.native_seconds:.1f} | {found.peak_mib:,.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
