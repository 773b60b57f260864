"""What a table's columns refuse, noted by the driver for the writers, who do not ask the database for it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from headwater.common.connector import OutputFiles
from headwater.datastream.connectors.jdbc.database import Database
from headwater.datastream.connectors.jdbc.limits import ColumnLimits, TableLimits
from headwater.datastream.connectors.jdbc.statement import Statement

NOTE: Final = "marker-"
"""Begins the names of files that stay for as long as the job's checkpoints do."""
_LIMITS: Final = f"{NOTE}.limits"


class _Noted(msgspec.Struct, frozen=True):
    sql: str
    limits: TableLimits | None


def read_limits(database: Database, connection: Any, statement: Statement) -> _Noted:
    """Look in the database. No limits if it cannot be told which columns the values go to."""
    target = statement.inserted()
    if target is None:
        return _Noted(statement.sql, None)
    table, columns = target
    there = {each.name: each for each in database.limits(connection, table)}
    any_case = {name.lower(): each for name, each in there.items()}
    names = [database.stored_name(column) for column in columns]
    found = [there.get(name) or any_case.get(name.lower()) or ColumnLimits(name, "") for name in names]
    return _Noted(statement.sql, TableLimits(table, tuple(found)))


def write_limits(files: OutputFiles, noted: _Noted) -> None:
    with files.write(_LIMITS) as file:
        file.write(msgspec.json.encode(noted))


def noted_limits(files: OutputFiles | None, statement: Statement) -> TableLimits | None:
    """What the driver has noted for this statement."""
    if files is None:
        return None
    try:
        with files.open(_LIMITS) as file:
            noted = msgspec.json.decode(file.read(), type=_Noted)
    except FileNotFoundError:
        return None
    return noted.limits if noted.sql == statement.sql else None
