"""A table as a sink: rows that come are inserted, or replace those of their key; then rows that go are deleted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from headwater.common.connector import ReusableSinkWriter, SinkWriter, WriterContext
from headwater.common.typeinfo import TypeInformation, Types
from headwater.common.types import RowKind, named_row
from headwater.datastream.connectors.base import DeliveryGuarantee
from headwater.datastream.connectors.jdbc.committer import Checks
from headwater.datastream.connectors.jdbc.database import Database, open_database
from headwater.datastream.connectors.jdbc.expected import ExpectedTable
from headwater.datastream.connectors.jdbc.options import JdbcConnectionOptions, JdbcExecutionOptions
from headwater.datastream.connectors.jdbc.sink import JdbcSink
from headwater.datastream.connectors.jdbc.spool import SpooledRows
from headwater.datastream.connectors.jdbc.statement import Statement
from headwater.datastream.connectors.jdbc.values import RowValues

_GO = (RowKind.DELETE, RowKind.UPDATE_BEFORE)


class JdbcTableSink(JdbcSink):
    """Takes Rows with row kinds. With a key, at most one row of each may come in an epoch; without one, none may go.

    As JdbcSink, exactly once or at least once. A row that goes needs no values but those of its key.
    """

    def __init__(
        self,
        expected: ExpectedTable,
        types: Sequence[TypeInformation],
        options: JdbcConnectionOptions,
        execution: JdbcExecutionOptions,
        guarantee: DeliveryGuarantee,
    ) -> None:
        owner, key, columns = f"JdbcSink ({expected.table})", expected.key, expected.names
        database = open_database(options, owner)
        table = database.quoted_table(expected.table)
        self._places = [columns.index(name) for name in key]
        self._replaces = (table, key) if key else None
        sql = database.upsert(table, columns, key) if key else database.insert(table, columns)
        statement, values, form = _output(database, sql, types)
        super().__init__(statement, values, options, execution, guarantee, form, expected)
        named = " AND ".join(f"{database.quoted(name)} = ?" for name in key)
        key_types = [types[place] for place in self._places]
        self._gone: JdbcSink | None = None
        if key:
            statement, values, form = _output(database, f"DELETE FROM {table} WHERE {named}", key_types)
            self._gone = JdbcSink(statement, values, options, execution, guarantee, form)

    def create_writer(self, context: WriterContext) -> SinkWriter:
        come = super().create_writer(context)
        return come if self._gone is None else ChangesWriter(self._gone.create_writer(context), come, self._places)

    def _checks(self) -> Checks:
        own = super()._checks()
        more = () if self._gone is None else self._gone._checks().statements
        return replace(own, statements=(*own.statements, *more), replaces=self._replaces)


def _output(database: Database, sql: str, types: Sequence[TypeInformation]) -> tuple[Statement, RowValues, str]:
    statement = Statement.of(sql)
    values = RowValues(Types.ROW(list(types)), statement.parameters, database.owner)
    return statement, values, database.form_of(statement)


class ChangesWriter(ReusableSinkWriter):
    """Writes deletions and replacements apart. Deletions come first: they may free what a UNIQUE column needs."""

    def __init__(self, gone: Any, come: Any, places: Sequence[int]) -> None:
        self._gone = gone
        self._come = come
        self._places = places

    def begin_epoch(self, context: WriterContext) -> None:
        self._gone.begin_epoch(context)
        self._come.begin_epoch(context)

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        gone = [named_row([row[at] for at in self._places], []) for row in values if row.get_row_kind() in _GO]
        come = [row for row in values if row.get_row_kind() not in _GO]
        if gone:
            self._gone.write_batch(gone, None)
        if come:
            self._come.write_batch(come, None)

    def prepare_commit(self) -> list[Any]:
        gone: list[Any] = self._gone.prepare_commit()
        return [*gone, *(_behind(each, len(gone)) for each in self._come.prepare_commit())]

    def make_durable(self) -> None:
        self._gone.make_durable()
        self._come.make_durable()

    def abort(self) -> None:
        self._gone.abort()
        self._come.abort()

    def close(self) -> None:
        self._gone.close()
        self._come.close()


def _behind(rows: SpooledRows, parts: int) -> SpooledRows:
    spooled = msgspec.structs.replace(rows.spooled, part=rows.spooled.part + parts)
    return msgspec.structs.replace(rows, spooled=spooled)
