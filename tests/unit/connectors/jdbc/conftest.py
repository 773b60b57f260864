"""A PostgreSQL server for all tests of a process, and a new database for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres_server import PostgresServer, postgres_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        server.set_and_restart(wal_level="logical")
        yield server


@pytest.fixture
def database(postgres: PostgresServer) -> str:
    return postgres.new_database()
