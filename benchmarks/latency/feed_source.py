"""A source that reads the feed: one split, whose position is the number of the next line.

It can be waited for: nobody needs to poll it.
"""

from __future__ import annotations

import socket
import time

from benchmarks.latency.feed import POSITION
from headwater.common.connector import Source, Split, SplitReader
from headwater.common.machine.descriptors import wait_any

RECEIVE_BYTES = 1 << 18


class FeedSource(Source):
    waits = True

    def __init__(self, port: int, *, bounded: bool = True) -> None:
        self.port = port
        self.bounded = bounded

    def discover_splits(self, parallelism: int, known: frozenset[str]) -> list[Split]:
        return [] if known else [Split("lines", None)]

    def open_reader(self, split: Split, position: int | None) -> SplitReader:
        return FeedReader(self.port, position or 0)


class FeedReader(SplitReader):
    """Keeps its connection until it is closed. Lines that are due when it is opened can be read at once."""

    def __init__(self, port: int, position: int) -> None:
        self._next = position
        self._lines: list[str] = []  # received, and not handed out
        self._rest = b""  # the beginning of a line
        self._ended = False
        self._connection = socket.create_connection(("127.0.0.1", port))
        self._connection.sendall(POSITION.pack(position))
        (due,) = POSITION.unpack(self._receive_exactly(POSITION.size))
        self._take(self._receive_exactly(due))

    def read_batch(self, max_records: int) -> list[str] | None:
        self._receive()
        if not self._lines:
            return None if self._ended else []
        batch, self._lines = self._lines[:max_records], self._lines[max_records:]
        self._next += len(batch)
        return batch

    def wait_readable(self, deadline: float, wake: int) -> bool:
        """Wait until there may be input, `time.monotonic()` passes `deadline`, or `wake` becomes readable."""
        if self._lines or self._ended:
            return True
        input_fd = self._connection.fileno()
        ready = wait_any([input_fd, wake], deadline - time.monotonic())
        return input_fd in ready

    def position(self) -> int:
        return self._next

    def close(self) -> None:
        self._connection.close()

    def _receive(self) -> None:
        """Take what is there, without waiting."""
        while not self._ended:
            try:
                data = self._connection.recv(RECEIVE_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            self._ended = not data
            self._take(data)
            if len(data) < RECEIVE_BYTES:
                return

    def _receive_exactly(self, size: int) -> bytes:
        data = self._connection.recv(size, socket.MSG_WAITALL) if size else b""
        if len(data) < size:
            raise ConnectionError(f"the feed ended after {len(data)} of {size} bytes")
        return data

    def _take(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._lines += [line.decode() for line in lines]
