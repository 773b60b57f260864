"""Two ways to write many keys to Redis: with the client that people use, and as fast as Python can.

Both pipeline, and both write only the keys that changed, once per interval.
"""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from itertools import islice
from typing import Any

BATCH = 1000
"""Keys per command. Larger ones are no faster."""


class Flush(ABC):
    """Writes results to Redis. Connects in the process that first uses it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._connection: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "_connection": None}

    @abstractmethod
    def write(self, prefix: str, values: dict[int, int]) -> None:
        """Set `prefix` + key for each key. Returns when Redis has answered for all."""


class ClientFlush(Flush):
    """redis-py: a pipeline of MSET commands. (A pipeline of SET is five times slower.)"""

    def write(self, prefix: str, values: dict[int, int]) -> None:
        import redis

        if self._connection is None:
            self._connection = redis.Redis(unix_socket_path=self.path)
        pipeline = self._connection.pipeline(transaction=False)
        items = iter(values.items())
        while batch := {f"{prefix}{key}": value for key, value in islice(items, BATCH)}:
            pipeline.mset(batch)
        pipeline.execute()


class RawFlush(Flush):
    """MSET commands written out by hand into a socket, answers counted and not parsed. Nothing in Python is faster."""

    def write(self, prefix: str, values: dict[int, int]) -> None:
        if self._connection is None:
            self._connection = socket.socket(socket.AF_UNIX)
            self._connection.connect(self.path)
        items, commands = iter(values.items()), 0
        while batch := list(islice(items, BATCH)):
            pairs = [(f"{prefix}{key}", str(value)) for key, value in batch]
            parts = "".join([f"${len(key)}\r\n{key}\r\n${len(value)}\r\n{value}\r\n" for key, value in pairs])
            self._connection.sendall(f"*{2 * len(pairs) + 1}\r\n$4\r\nMSET\r\n{parts}".encode())
            commands += 1
        answers = b"+OK\r\n" * commands
        received = b""
        while len(received) < len(answers):
            received += self._connection.recv(1 << 16)
        if received != answers:
            raise RuntimeError(f"Redis answered {received[:200]!r}")
