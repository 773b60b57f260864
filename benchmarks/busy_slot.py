"""What readers cost a slot that processes without a pause: records per second with and without them, in turn.

    python -m benchmarks.busy_slot [--pairs 20] [--readers 8] [--rate 500] [--spinners 0]

The slot's thread counts records per key in state, 20,000 per epoch, with a checkpoint after each epoch; its query
server is the one of slots. Readers are threads of another process that ask for committed values: `rate` of them per
second all together, or as many as they can (0). Both are on one machine, so it must have a core for each and nothing
else to do; `chrt -r 10` in front of the command keeps others away. With `spinners`, so many processes that never rest
share the first core with the slot, and the readers have the others.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.workload import key_of, percentile
from headwater.common.query_error import QueryError
from headwater.queryable_state.locations import SlotPlace
from headwater.queryable_state.slot_connections import SlotConnection
from headwater.runtime.slot.protocol import query_secret
from headwater.runtime.slot.query.server import Lease, QueryServer
from headwater.state.backends import make_keyed_backend
from headwater.state.descriptors import ValueStateDescriptor

SECRET = b"of this benchmark's slot".ljust(32)
KEYS, EPOCH_RECORDS, CHUNK_RECORDS = 100_000, 20_000, 4096
SECONDS = 1.0


class Rates(NamedTuple):
    """Records per second of the clock, and of processor time of the slot's whole process, with what readers cost it.

    The second hardly depends on what else the machine does.
    """

    by_the_clock: float
    by_processor_time: float


class BusySlot:
    """What queries need of a slot, with one operator in it that counts."""

    def __init__(self) -> None:
        self.backend: Any = make_keyed_backend("heap", "op", 128, range(128))
        self.readable = self
        self.processing = True
        self._count: Any = self.backend.get_state(ValueStateDescriptor("count"))
        self._keys = [key_of(number, KEYS) for number in range(10 * EPOCH_RECORDS)]
        self._epoch = 0
        self.between_chunks: Callable[[], None] = lambda: None

    def backends(self) -> list[Any]:
        return [self.backend]

    def run(self, seconds: float) -> Rates:
        """Process for so long."""
        started, used, records = time.monotonic(), time.process_time(), 0
        while time.monotonic() - started < seconds:
            self._run_epoch()
            records += EPOCH_RECORDS
        return Rates(records / (time.monotonic() - started), records / (time.process_time() - used))

    def _run_epoch(self) -> None:
        self._epoch += 1
        backend, count = self.backend, self._count
        first = self._epoch % 10 * EPOCH_RECORDS
        backend.begin_epoch()
        for start in range(first, first + EPOCH_RECORDS, CHUNK_RECORDS):
            for key in self._keys[start : min(start + CHUNK_RECORDS, first + EPOCH_RECORDS)]:
                backend.current_key = key
                count.update((count.value() or 0) + 1)
            self.between_chunks()
        backend.cut_epoch = self._epoch
        backend.commit_epoch(cut=True)
        backend.checkpoint_completed()


def read(path: str, readers: int, rate: float, active: Any, over: Any) -> None:
    """The other process: read while `active` is set, and print what came of it when it is `over`."""
    milliseconds: list[float] = []
    refused: Counter[str] = Counter()
    reading = [0.0] * readers

    def read_on(first: int) -> None:
        connection = SlotConnection(SlotPlace(0, 0, "here", 0, path, "one", True), query_secret(SECRET), 60.0)
        number, between = first, readers / rate if rate else 0.0
        while not over.is_set():
            active.wait()
            started = time.monotonic()
            due = started + between * first / readers
            while active.is_set() and not over.is_set():
                time.sleep(max(0.0, due - time.monotonic()))
                due = due if rate else time.monotonic()
                request = {"op": "get", "operator": "op", "state": "count", "keys": [key_of(number, KEYS)]}
                try:
                    connection.ask(request, 5.0)
                    milliseconds.append((time.monotonic() - due) * 1000)
                except QueryError as error:
                    refused[error.problem.code] += 1
                    time.sleep(error.retry_after_seconds)
                due, number = due + between, number + readers
            reading[first] += time.monotonic() - started

    threads = [threading.Thread(target=read_on, args=(first,)) for first in range(readers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = sum(reading) / readers
    print(
        f"{len(milliseconds) / seconds:,.0f} answers/s, p50 {percentile(milliseconds, 0.5):.1f} ms, "
        f"p99 {percentile(milliseconds, 0.99):.1f} ms, refused {dict(refused)}",
        flush=True,
    )


def spin() -> None:
    while True:
        pass


def main() -> None:
    options = argparse.ArgumentParser()
    for name, kind, default in (("pairs", int, 20), ("readers", int, 8), ("rate", float, 500.0), ("spinners", int, 0)):
        options.add_argument(f"--{name}", type=kind, default=default)
    chosen = options.parse_args()
    spawned = multiprocessing.get_context("spawn")
    active, over = spawned.Event(), spawned.Event()
    with tempfile.TemporaryDirectory() as directory:
        path, slot, lease = f"{directory}/query.sock", BusySlot(), Lease()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(256)
        lease.until_ns = 1 << 62
        reader = spawned.Process(target=read, args=(path, chosen.readers, chosen.rate, active, over))
        reader.start()
        spinners = [spawned.Process(target=spin, daemon=True) for _ in range(chosen.spinners)]
        first, *others = sorted(os.sched_getaffinity(0))
        for spinner in spinners:
            spinner.start()
            os.sched_setaffinity(spinner.pid or 0, {first})
        if spinners:
            os.sched_setaffinity(reader.pid or 0, set(others))
            os.sched_setaffinity(0, {first})
        server = QueryServer(slot, [listener], SECRET, "one", lease)  # type: ignore[arg-type]
        server.start()
        slot.between_chunks = server.poll
        slot.run(4.0)  # all keys have come, and all readers are connected
        pairs = []
        for _ in range(chosen.pairs):
            alone = slot.run(SECONDS)
            active.set()
            pairs.append((alone, slot.run(SECONDS)))
            active.clear()
            slot.run(0.2)
        over.set()
        active.set()
        reader.join()
        for spinner in spinners:
            spinner.kill()
        for index, kind in enumerate(("by the clock", "by processor time")):
            alone, beside = ([rates[index] for rates in side] for side in zip(*pairs, strict=True))
            kept = sorted(after / before for before, after in zip(alone, beside, strict=True))
            means = f"{sum(alone) / len(pairs):,.0f} alone, {sum(beside) / len(pairs):,.0f} with readers"
            spread = f"median {kept[len(kept) // 2]:.3f}, from {kept[0]:.3f} to {kept[-1]:.3f}"
            print(f"records/s {kind}: {means}; {len(pairs)} pairs: {spread}")


if __name__ == "__main__":
    main()
