"""Wakes the job's thread from any other thread."""

from __future__ import annotations

import contextlib
import socket

from headwater.common.machine.descriptors import wait_any


class Wakeup:
    """As `threading.Event`, but with a `fileno`: a thread can wait for it and for sockets in one `select`.

    Only the waiting thread calls `clear`, before it looks at what it may have been woken for.
    """

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)

    def fileno(self) -> int:
        """Readable while it is set."""
        return self._reader.fileno()

    def set(self) -> None:
        """Wake whoever waits, or will wait next. After `close` it does nothing."""
        with contextlib.suppress(OSError):  # full: it is set already
            self._writer.send(b"\0")

    def clear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._reader.recv(4096):
                pass

    def wait(self, seconds: float) -> bool:
        """Wait until it is set, but not longer. Return True if it is set."""
        return bool(wait_any([self._reader.fileno()], seconds))

    def close(self) -> None:
        self._reader.close()
        self._writer.close()
