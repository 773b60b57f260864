"""Which connectors there are: those of headwater, and those of other packages."""

from __future__ import annotations

import importlib
from functools import cache
from importlib.metadata import entry_points

from headwater.common.errors import SqlError
from headwater.table.batch.options import TableOptions, nearest
from headwater.table.catalog.objects import CatalogTable, Identifier
from headwater.table.plan.expressions import Rex
from headwater.table.stream.connectors.contract import Connector, Field, TableContext

GROUP = "headwater.table.connectors"

_OWN = {
    "blackhole": "headwater.table.stream.connectors.blackhole:BlackholeConnector",
    "datagen": "headwater.table.stream.connectors.datagen:DatagenConnector",
    "filesystem": "headwater.table.stream.connectors.filesystem:FilesystemConnector",
    "jdbc": "headwater.table.stream.connectors.jdbc:JdbcConnector",
    "kafka": "headwater.table.stream.connectors.kafka:KafkaConnector",
    "mysql-cdc": "headwater.table.stream.connectors.cdc:MySqlCdcConnector",
    "postgres-cdc": "headwater.table.stream.connectors.cdc:PostgresCdcConnector",
    "print": "headwater.table.stream.connectors.printing:PrintConnector",
    "redis": "headwater.table.stream.connectors.redis:RedisConnector",
    "upsert-kafka": "headwater.table.stream.connectors.kafka:UpsertKafkaConnector",
}


@cache
def _others() -> dict[str, str]:
    return {each.name: each.value for each in entry_points(group=GROUP)}


def connector_of(context: TableContext) -> Connector:
    """The connector that the table's options name."""
    known = {**_OWN, **_others()}
    name = context.options.text("connector")
    if name is None:
        raise SqlError(f"{context.options.owner} needs the option 'connector'; there is {', '.join(sorted(known))}")
    if name not in known:
        cure = nearest(name, known)
        raise SqlError(
            f"{context.options.owner}: there is no connector '{name}'{cure} (there is {', '.join(sorted(known))})"
        )
    module, _, attribute = known[name].partition(":")
    found = getattr(importlib.import_module(module), attribute)()
    if not isinstance(found, Connector):
        raise SqlError(f"connector '{name}' ({known[name]}) is no headwater.table.stream.connectors.contract.Connector")
    return found


def context_of(
    identifier: Identifier, table: CatalogTable, fields: tuple[Field, ...], zone: str, filters: tuple[Rex, ...] = ()
) -> TableContext:
    options = TableOptions(f"table '{identifier}' ({table.options.get('connector', 'no connector')})", table.options)
    return TableContext(identifier, table, fields, options, zone, filters)
