"""A table of PostgreSQL whose changes are read, and who writes into it."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import psycopg

from headwater.datastream.connectors.postgres_cdc import PostgresIncrementalSource, PostgresSourceBuilder
from tests.unit.connectors.cdc import RandomWriter

CREATE = "CREATE TABLE items (id int PRIMARY KEY, name text, price numeric(10, 2))"
FULL = "ALTER TABLE items REPLICA IDENTITY FULL"


def builder(uri: str, *tables: str) -> PostgresSourceBuilder:
    parts = urlsplit(uri)
    return (
        PostgresIncrementalSource.builder()
        .hostname(parse_qs(parts.query)["host"][0])
        .database(parts.path[1:])
        .username("postgres")
        .table_list(*(tables or ("public.items",)))
        .slot_name(f"slot_{parts.path[1:]}")
    )


class Writer(RandomWriter):
    insert = "INSERT INTO items VALUES (%(key)s, %(name)s, 1.50) ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name"
    move = (
        "UPDATE items SET id = %(other)s WHERE id = %(key)s AND NOT EXISTS (SELECT 1 FROM items WHERE id = %(other)s)"
    )

    def __init__(self, uri: str, seed: int, key: str = "number") -> None:
        super().__init__(lambda: psycopg.connect(uri), seed, key)
