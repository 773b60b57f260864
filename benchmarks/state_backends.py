"""What a state backend costs per record, without a job around it: `python -m benchmarks.state_backends`.

One value state of (count, sum) per int key, read and written for every record, keys at random; epochs of a fixed number
of records, each with its commit. The keys are all there before the clock starts. Each row runs in a process of its own,
so that its memory can be told: it is what the process grew by, not what the backend says. Times are CPU time of the
whole process, RocksDB's threads included; the rate by the clock means something only where nothing else runs.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from headwater.state.backends import make_keyed_backend
from headwater.state.descriptors import ValueStateDescriptor
from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.rocksdb.options import RocksDBOptions

MAX_PARALLELISM = 128


@dataclass(frozen=True)
class Run:
    """One row of the report."""

    backend: str
    memory_mib: int | None
    end: str
    """What happens at the end of each epoch besides the commit: nothing, "delta" or "native"."""
    prefetch: bool
    keys: int
    records_per_epoch: int
    epochs: int


@dataclass(frozen=True)
class Measured:
    clock_seconds: float
    use_seconds: float
    """CPU time spent in `value` and `update`, and in fetching ahead."""
    end_seconds: float
    """CPU time spent in the delta, the commit and the native checkpoint."""
    grown_mib: float
    peak_mib: float


def measure(run: Run) -> Measured:
    """Run it in this process."""
    directory = Path(tempfile.mkdtemp(prefix="headwater-state-backends-"))
    try:
        return _measure(run, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _measure(run: Run, directory: Path) -> Measured:
    process = psutil.Process()
    before = process.memory_info().rss
    options = None if run.memory_mib is None else RocksDBOptions(run.memory_mib << 20, directory)
    backend = make_keyed_backend(run.backend, "count", MAX_PARALLELISM, range(MAX_PARALLELISM), options)
    state = backend.get_state(ValueStateDescriptor("count and sum"))
    for start in range(0, run.keys, run.records_per_epoch):
        backend.begin_epoch()
        for key in range(start, min(start + run.records_per_epoch, run.keys)):
            backend.current_key = key
            state.update((1, key))
        backend.commit_epoch(cut=True)
        backend.checkpoint_completed()
    dice = random.Random(7)
    clock_seconds = use_seconds = end_seconds = 0.0
    for epoch in range(run.epochs):
        keys = [dice.randrange(run.keys) for _ in range(run.records_per_epoch)]
        clock, started = time.perf_counter(), time.process_time()
        backend.begin_epoch()
        if run.prefetch:
            _prefetch(backend)(keys)
        for key in keys:
            backend.current_key = key
            count, total = state.value()
            state.update((count + 1, total + key))
        used = time.process_time()
        _end_epoch(backend, run.end, directory / f"checkpoint-{epoch}")
        use_seconds += used - started
        end_seconds += time.process_time() - used
        clock_seconds += time.perf_counter() - clock
    grown = process.memory_info().rss - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    return Measured(clock_seconds, use_seconds, end_seconds, grown / 2**20, peak / 2**20)


def _prefetch(backend: KeyedStateBackend) -> Callable[[Any], None]:
    fetch: Callable[[Any], None] = backend.prefetch  # type: ignore[attr-defined]
    return fetch


def _end_epoch(backend: KeyedStateBackend, end: str, checkpoint: Path) -> None:
    if end == "delta":
        backend.delta_sections()
    backend.commit_epoch(cut=True)
    if end == "native":
        backend.native_checkpoint(checkpoint)  # type: ignore[attr-defined]
    backend.checkpoint_completed()


def _in_a_process(run: Run) -> Measured:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (run,))


def runs(keys: int, records_per_epoch: int, epochs: int, memory: list[int]) -> list[Run]:
    """Heap, and RocksDB with memory for all keys and for few of them."""
    sizes = (keys, records_per_epoch, epochs)
    rows = [Run("heap", None, end, False, *sizes) for end in ("", "delta")]
    for memory_mib in memory:
        rows += [Run("rocksdb", memory_mib, end, False, *sizes) for end in ("", "delta", "native")]
        rows.append(Run("rocksdb", memory_mib, "", True, *sizes))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--records-per-epoch", type=int, default=100_000)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--memory-mib", type=int, nargs="+", default=[512, 64, 16], help="of RocksDB")
    parser.add_argument("--backend", choices=["heap", "rocksdb"], help="only this one")
    chosen = parser.parse_args()
    print("| backend | memory | with each epoch | records/s | per CPU second | use, ns | end, ns | grown | peak |")
    print("|---|---|---|---|---|---|---|---|---|")
    for run in runs(chosen.keys, chosen.records_per_epoch, chosen.epochs, chosen.memory_mib):
        if chosen.backend in (None, run.backend):
            print(_row(run, _in_a_process(run)), flush=True)


def _row(run: Run, found: Measured) -> str:
    records = run.epochs * run.records_per_epoch
    memory = "" if run.memory_mib is None else f"{run.memory_mib} MiB"
    end = " + ".join(part for part in ("prefetch" if run.prefetch else "", run.end, "commit") if part)
    use, ended = found.use_seconds / records * 1e9, found.end_seconds / records * 1e9
    rate, per_cpu = records / found.clock_seconds, records / (found.use_seconds + found.end_seconds)
    return (
        f"| {run.backend} | {memory} | {end} | {rate:,.0f} | {per_cpu:,.0f} | {use:,.0f} | {ended:,.0f} "
        f"| {found.grown_mib:,.0f} MiB | {found.peak_mib:,.0f} MiB |"
    )


if __name__ == "__main__":
    main()
