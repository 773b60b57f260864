"""Both ends of a job that reads lines from one TCP port and writes lines to another.

One process creates the records and sees the results, so one clock tells the latency.
"""

from __future__ import annotations

import socket
import threading
import time

from benchmarks.latency.schedule import Schedule


def _listen() -> socket.socket:
    server = socket.create_server(("127.0.0.1", 0))
    server.listen()
    return server


class Feed(threading.Thread):
    """Serves the schedule's lines to the first client that connects, each when it is due, then closes."""

    def __init__(self, schedule: Schedule) -> None:
        super().__init__(daemon=True)
        self._schedule = schedule
        self._server = _listen()
        self.port = int(self._server.getsockname()[1])

    def run(self) -> None:
        connection, _ = self._server.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        start = time.time()
        sent = 0
        with connection:
            while sent < self._schedule.records:
                due = self._schedule.due(start, time.time())
                lines = [self._schedule.line(start, i) + "\n" for i in range(sent, due)]
                connection.sendall("".join(lines).encode())
                sent = due
                time.sleep(0.001)


class Collector(threading.Thread):
    """Takes lines from any number of clients and notes how long each record was under way."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._server = _listen()
        self.port = int(self._server.getsockname()[1])
        self.seen: list[tuple[int, float]] = []

    def run(self) -> None:
        while True:
            connection, _ = self._server.accept()
            threading.Thread(target=self._collect, args=(connection,), daemon=True).start()

    def _collect(self, connection: socket.socket) -> None:
        with connection, connection.makefile("r", encoding="utf-8") as lines:
            for line in lines:
                i, created = line.split()
                self.seen.append((int(i), time.time() - float(created)))
