"""The writers: into checkpoint storage (exactly once), or straight to the database (at least once)."""

from __future__ import annotations

import contextlib
import pickle
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from headwater.common.connector import ReusableSinkWriter, WriterContext
from headwater.common.errors import SerializationError
from headwater.datastream.connectors.jdbc.copy_text import COPY_TEXT, copy_text
from headwater.datastream.connectors.jdbc.database import ROWS, Database
from headwater.datastream.connectors.jdbc.noted_limits import noted_limits
from headwater.datastream.connectors.jdbc.options import JdbcExecutionOptions
from headwater.datastream.connectors.jdbc.spool import Block, SpooledRows
from headwater.datastream.connectors.jdbc.statement import Statement
from headwater.datastream.connectors.jdbc.values import RowValues, Values
from headwater.datastream.connectors.spool_writer import SpoolWriter


class RowWriter(SpoolWriter):
    """Puts rows into files of the checkpoint storage. The database gets them when the checkpoint is durable."""

    def __init__(self, context: WriterContext, statement: Statement, values: RowValues, form: str) -> None:
        self._statement = statement
        self._values = values
        limits = noted_limits(context.files, statement)
        self._values_of = values.compile(limits)
        self._form = form = ROWS if limits is not None and limits.rounds(values.types) else form
        self._block: Callable[[Sequence[Values]], bytes] = (
            partial(copy_text, width=statement.parameters) if form == COPY_TEXT else _pickled
        )
        super().__init__(context, self._encoded)

    def _encoded(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> tuple[Block, int, str]:
        rows = self._values_of(values)
        try:
            return (len(rows), self._block(rows)), len(rows), ""
        except (SerializationError, pickle.PicklingError) as error:
            raise self._values.blame(rows, self._block, error) from None

    def prepare_commit(self) -> list[Any]:
        return [SpooledRows(spooled, self._statement.sql, self._form) for spooled in super().prepare_commit()]


def _pickled(rows: Sequence[Values]) -> bytes:
    return pickle.dumps(list(map(tuple, rows)), 5)


class DirectWriter(ReusableSinkWriter):
    """Runs the statement as rows come, in batches; an epoch ends when the database has all of them: at least once."""

    def __init__(
        self,
        context: WriterContext,
        database: Database,
        statement: Statement,
        values: RowValues,
        options: JdbcExecutionOptions,
    ) -> None:
        self._database = database
        self._statement = statement
        self._values_of = values.compile(noted_limits(context.files, statement))
        self._options = options
        self._connection: Any = None
        self._rows: list[Values] = []
        self._since = 0.0
        """When the oldest waiting row came."""

    def begin_epoch(self, context: WriterContext) -> None:
        self._rows = []

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        if not self._rows:
            self._since = time.monotonic()
        self._rows += map(tuple, self._values_of(values))
        interval_ms = self._options.batch_interval_ms
        due = interval_ms > 0 and (time.monotonic() - self._since) * 1000 >= interval_ms
        if due or len(self._rows) >= self._options.batch_size:
            self._flush()

    def prepare_commit(self) -> list[Any]:
        self._flush()
        return []

    def _flush(self) -> None:
        """Write what waits, in one transaction."""
        rows, left = self._rows, self._options.max_retries
        while rows:
            database = self._database
            try:
                if self._connection is None:
                    self._connection = database.connect()
                database.write_rows(self._connection, self._statement, [rows], self._options.batch_size)
                self._connection.commit()
                break
            except database.error as error:
                self.close()
                if left == 0 or not database.may_pass(error):
                    raise database.failed("cannot write rows", error) from None
                left -= 1
        self._rows = []

    def abort(self) -> None:
        """What was written is there: it comes again. That is what at least once means."""
        self._rows = []

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()
