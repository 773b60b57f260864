"""Creates the records: a process of its own that serves lines by TCP, each when it is due.

A client says at which line it wants to begin. So it can connect again, as often as it likes, and loses nothing and gets
nothing twice. The schedule starts with the first client. A thread of the program would share Python's lock with the
coordinator, and slow both.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import threading
import time
from types import TracebackType

from benchmarks.latency.schedule import Schedule

POSITION = struct.Struct("<q")
"""The client's first bytes: the line to begin with. The server's: how many bytes follow that were due already."""

LEAST_PAUSE_S = 0.0005
"""At high rates, lines are sent this often: a process that wakes for every one of them would keep a core busy."""


class Feed:
    """The feed of a program, which ends with it. A context manager."""

    def __init__(self, schedule: Schedule, *, hold: bool = False) -> None:
        """`hold`: do not close connections after the last line, as a source that has nothing for now."""
        command = [sys.executable, "-m", "benchmarks.latency.feed", str(schedule.rate)]
        command += [str(schedule.warm_up_s), str(schedule.measured_s), str(int(hold))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def __enter__(self) -> Feed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()


class FeedServer:
    """Serves any number of clients, each at its own position."""

    def __init__(self, schedule: Schedule, *, hold: bool) -> None:
        self._schedule = schedule
        self._hold = hold
        self._start: float | None = None
        self._starting = threading.Lock()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])

    def serve(self) -> None:
        while True:
            connection, _ = self._server.accept()
            threading.Thread(target=self._serve_client, args=(connection,), daemon=True).start()

    def _serve_client(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            with connection:
                self._send_lines(connection, *POSITION.unpack(connection.recv(POSITION.size, socket.MSG_WAITALL)))
        except (OSError, struct.error):
            pass  # the client has gone; it may come again

    def _send_lines(self, connection: socket.socket, sent: int) -> None:
        with self._starting:
            start = self._start = self._start or time.time()
        due = self._schedule.due(start, time.time())
        lines = self._lines(start, sent, due)
        connection.sendall(POSITION.pack(len(lines)) + lines)
        sent = max(sent, due)
        while sent < self._schedule.records:
            pause_s = self._schedule.created(start, sent) - time.time()
            time.sleep(max(pause_s, LEAST_PAUSE_S))
            due = self._schedule.due(start, time.time())
            connection.sendall(self._lines(start, sent, due))
            sent = due
        if self._hold:
            connection.recv(1)  # until the client goes

    def _lines(self, start: float, first: int, end: int) -> bytes:
        return "".join(self._schedule.line(start, i) + "\n" for i in range(first, end)).encode()


def main() -> None:
    rate, warm_up_s, measured_s, hold = sys.argv[1:]
    server = FeedServer(Schedule(int(rate), float(warm_up_s), float(measured_s)), hold=hold == "1")
    threading.Thread(target=server.serve, daemon=True).start()
    print(server.port, flush=True)
    sys.stdin.read()  # ends when the program that started this one does


if __name__ == "__main__":
    main()
