"""Reads single keys at a steady rate, from a job's state or from Redis, until it is told to stop, and takes the time.

A read's time begins when it is due, not when it is sent: a reader that falls behind does not look fast.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.workload import StampDir, arguments, percentile

STATE = "state"
THREADS = 8
WAIT_SECONDS = 600.0


@contextlib.contextmanager
def reading(stamps: StampDir, source: str, keys: int, rate: int) -> Iterator[None]:
    """Read in a process of its own, from the first answer to the end of the block. It leaves a `reads` stamp."""
    command = [sys.executable, "-m", "benchmarks.impressions.readers", "--stamps", stamps.path]
    process = subprocess.Popen([*command, "--source", source, "--keys", str(keys), "--rate", str(rate)])
    try:
        yield
    finally:
        stamps.stamp("stop-reading")
        process.wait(60)


class Times:
    """What the threads measured."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.ms: list[float] = []
        self.last = 0.0
        """When the last answer came."""
        self.empty = 0
        self.refused: Counter[str] = Counter()

    def add(self, seconds: float, answer: bool | str) -> None:
        """`answer`: whether the key was found, or why there was no answer."""
        with self._lock:
            if isinstance(answer, str):
                self.refused[answer] += 1
            else:
                self.ms.append(seconds * 1000)
                self.last = time.monotonic()
                self.empty += not answer


def state_reader(path: str) -> Callable[[int], bool | str]:
    """Read a key's open window from its slot, as it is now: what Redis would have within the second."""
    from headwater.common.query_error import MAY_HAVE_MOVED, QueryError
    from headwater.operators.window.base import PANES
    from headwater.queryable_state.control_locator import ControlLocator
    from headwater.queryable_state.reader import LIVE, StateReader
    from headwater.runtime.job.run_directory import RunDirectory

    directory = RunDirectory(path)
    until = time.monotonic() + WAIT_SECONDS
    while not (cards := directory.cards()) and time.monotonic() < until:
        time.sleep(0.1)
    reader = StateReader(ControlLocator(directory, cards[0]), 5.0, retried=MAY_HAVE_MOVED)

    def read(key: int) -> bool | str:
        try:
            return reader.get("impressions", PANES, [key], LIVE)[0].found
        except QueryError as error:
            return error.problem.code

    return read


def redis_reader(path: str) -> Callable[[int], bool | str]:
    import redis

    client = redis.Redis(unix_socket_path=path)
    return lambda key: client.get(f"impressions:0:{key}") is not None


def read_on(read: Callable[[int], bool | str], options: Any, first: int, stop: threading.Event, times: Times) -> None:
    due, number = time.monotonic() + first / options.rate, first
    while not stop.wait(max(0.0, due - time.monotonic())):
        answer = read(number * 7919 % options.keys)
        times.add(time.monotonic() - due, answer)
        due, number = due + THREADS / options.rate, number + THREADS


def main() -> None:
    options = arguments(source="", keys=1_000_000, rate=1000)
    stamps, stop, times = StampDir(options.stamps), threading.Event(), Times()
    kind, _, path = options.source.partition(":")
    read = state_reader(path) if kind == STATE else redis_reader(path)
    while not stamps.read("stop-reading") and read(1) is not True:
        time.sleep(0.2)
    threads = [threading.Thread(target=read_on, args=(read, options, first, stop, times)) for first in range(THREADS)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    while not stamps.read("stop-reading"):
        time.sleep(0.1)
    stop.set()
    for thread in threads:
        thread.join()
    seconds = times.last - started  # the job's end is found out by waiting for an answer
    if times.ms:
        stamps.stamp(
            "reads",
            read_p50_ms=percentile(times.ms, 0.5),
            read_p99_ms=percentile(times.ms, 0.99),
            reads_per_second=len(times.ms) / seconds,
            empty=times.empty,
            not_answered=times.refused.total(),
            refused=dict(times.refused),
        )


if __name__ == "__main__":
    main()
