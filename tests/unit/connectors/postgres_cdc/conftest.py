"""A PostgreSQL server with logical replication for all tests of a process, and a new database for each."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.postgres_server import PostgresServer, postgres_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        server.set_and_restart(wal_level="logical", wal_sender_timeout="60s", max_replication_slots="50")
        yield server


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[str]:
    yield postgres.new_database()
    with psycopg.connect(postgres.uri, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active_pid IS NOT NULL"
        )
        for _ in range(100):  # a slot is free when its reader is gone
            try:
                connection.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
                break
            except psycopg.errors.ObjectInUse:
                continue
