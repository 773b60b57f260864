"""What a table's columns refuse, noted by the driver for the writers, who do not ask the database for it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from headwater.common.connector import OutputFiles
from headwater.datastream.connectors.jdbc.database import Database
from headwater.datastream.connectors.jdbc.limits import ColumnLimits, TableLimits
from headwater.datastream.connectors.jdbc.statement import Statement
from headwater.datastream.connectors.spool_notes import NOTE, read_note, write_note

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
    write_note(files, _LIMITS, msgspec.json.encode(noted))


def noted_limits(files: OutputFiles | None, statement: Statement) -> TableLimits | None:
    """What the driver has noted for this statement."""
    content = read_note(files, _LIMITS)
    noted = None if content is None else msgspec.json.decode(content, type=_Noted)
    return noted.limits if noted is not None and noted.sql == statement.sql else None
