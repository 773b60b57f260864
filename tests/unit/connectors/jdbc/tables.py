"""Another client beside the connector's: it makes tables and reads them."""

from __future__ import annotations

from typing import Any

import psycopg

from headwater.common import Types
from headwater.datastream.connectors.jdbc import (
    DeliveryGuarantee,
    JdbcConnectionOptions,
    JdbcExecutionOptions,
    JdbcSink,
)
from tests.postgres_server import jdbc_url

INSERT = "INSERT INTO numbers (i, text) VALUES (?, ?)"
UPSERT = f"{INSERT} ON CONFLICT (i) DO UPDATE SET text = EXCLUDED.text"
ROW = Types.ROW_NAMED(["i", "text"], [Types.LONG(), Types.STRING()])


def run(uri: str, *statements: str) -> list[Any]:
    """Run statements, and return the rows of the last one."""
    with psycopg.connect(uri, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []


def options(url: str) -> JdbcConnectionOptions:
    return JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url).build()


def sink(
    uri: str,
    sql: str = INSERT,
    guarantee: DeliveryGuarantee = DeliveryGuarantee.EXACTLY_ONCE,
    execution: JdbcExecutionOptions | None = None,
) -> JdbcSink:
    url = uri if uri.startswith("jdbc:") else jdbc_url(uri)
    return JdbcSink.sink(sql, ROW, options(url), execution, delivery_guarantee=guarantee)
