"""Asks this executor's fork server for slots. Starts the fork server if there is none."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pickle
import socket
import subprocess
import sys

import xxhash

from headwater.common.errors import SerializationError
from headwater.common.machine.descriptors import wait_any
from headwater.runtime.epoch.failure import ConnectionLostError
from headwater.runtime.epoch.messages import SlotAddress
from headwater.runtime.slot.directories import own_directory
from headwater.runtime.slot.fork_server import SlotRequest, send_request

START_SECONDS = 60
"""How long a slot may take until it listens. That includes importing the user's modules."""


def answer_to(request: SlotRequest) -> SlotAddress | SerializationError | str | None:
    """What the slot says that is forked for `request`: where it listens, or why not; None if it says nothing."""
    watched = request.config.watch_pid
    answer, answer_write = os.pipe()
    try:
        try:
            with _fork_server(watched) as server:
                send_request(server, request, answer_write, sys.stderr.fileno())
        except (BrokenPipeError, ConnectionResetError):
            return None
        finally:
            os.close(answer_write)
        if not wait_any([answer], START_SECONDS):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(_fork_server_path(watched))  # it may hang: the next request starts another
            return f"no answer within {START_SECONDS} s"
        data = os.read(answer, 1 << 20)
        return pickle.loads(data) if data else None
    finally:
        os.close(answer)


def _fork_server_path(watched: int) -> str:
    """Return the path where the fork server of the process `watched` listens.

    The environment configures Python (hash seed, module path), so only processes with the same environment share a
    fork server: the path contains its hash.
    """
    started_with = repr((sys.executable, sorted(os.environ.items()))).encode()
    return os.path.join(own_directory(), f"fork-{watched}-{xxhash.xxh64_hexdigest(started_with)}.sock")


def _fork_server(watched: int) -> socket.socket:
    """Return a connection to the fork server of the process `watched`. Start the fork server if there is none."""
    path = _fork_server_path(watched)
    with contextlib.suppress(OSError):
        return _connected(path)
    with open(os.path.join(own_directory(), "fork.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with contextlib.suppress(OSError):  # another process may have started it meanwhile
            return _connected(path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        _start(path, watched)
    return _connected(path)


def _start(path: str, watched: int) -> None:
    """Start a fork server, and return when it listens."""
    listening, listening_write = os.pipe()
    try:
        try:
            subprocess.Popen(
                [sys.executable, "-m", "headwater.runtime.slot.fork_server", path, str(watched), str(listening_write)],
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr.fileno(),
                start_new_session=True,
                pass_fds=(listening_write,),
                env={**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
            )
        finally:
            os.close(listening_write)
        if not wait_any([listening], START_SECONDS) or not os.read(listening, 1):
            raise ConnectionLostError("the process that slots are forked from did not start; its output says why")
    finally:
        os.close(listening)


def _connected(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.connect(path)
    except OSError:
        sock.close()
        raise
    return sock
