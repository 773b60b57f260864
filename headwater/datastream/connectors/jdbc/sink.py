"""The sink."""

from __future__ import annotations

from headwater.common.connector import Committer, Sink, SinkWriter, WriterContext
from headwater.common.errors import ConfigurationError, short_repr
from headwater.common.secrets import without_passwords
from headwater.common.typeinfo import TypeInformation
from headwater.datastream.connectors.base import DeliveryGuarantee
from headwater.datastream.connectors.jdbc.committer import Checks, MarkedCommitter, NothingToCommit
from headwater.datastream.connectors.jdbc.database import open_database
from headwater.datastream.connectors.jdbc.expected import ExpectedTable
from headwater.datastream.connectors.jdbc.options import (
    DEFAULT_BATCH_INTERVAL_MS,
    JdbcConnectionOptions,
    JdbcExecutionOptions,
)
from headwater.datastream.connectors.jdbc.statement import Statement
from headwater.datastream.connectors.jdbc.values import RowValues
from headwater.datastream.connectors.jdbc.writers import DirectWriter, RowWriter
from headwater.datastream.connectors.message_sink import checked_guarantee
from headwater.datastream.no_effect import warn_no_effect


class JdbcSink(Sink):
    """Runs a statement for each row, in a database.

    EXACTLY_ONCE (the default; Flink's is at least once): the output of a checkpoint is written, with a mark, when the
    checkpoint is durable. AT_LEAST_ONCE: rows are written as they come, and come again after a failure.
    """

    def __init__(
        self,
        statement: Statement,
        values: RowValues,
        options: JdbcConnectionOptions,
        execution: JdbcExecutionOptions,
        guarantee: DeliveryGuarantee,
        form: str,
        expected: ExpectedTable | None = None,
    ) -> None:
        self._statement = statement
        self._values = values
        self._options = options
        self._execution = execution
        self.guarantee = guarantee
        self._form = form
        self._expected = expected

    @staticmethod
    def sink(
        sql: str,
        type_info: TypeInformation,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
        *,
        delivery_guarantee: DeliveryGuarantee = DeliveryGuarantee.EXACTLY_ONCE,
    ) -> JdbcSink:
        """Make a sink for `stream.add_sink(...)`, or `sink_to`.

        :param sql: a statement with a `?` for each field of a row.
        :param type_info: the type of the rows: Types.ROW([...]).
        :param delivery_guarantee: EXACTLY_ONCE, or AT_LEAST_ONCE. Beyond PyFlink.
        """
        if not isinstance(jdbc_connection_options, JdbcConnectionOptions):
            hint = "; did you forget build()?" if hasattr(jdbc_connection_options, "build") else ""
            found = short_repr(type(jdbc_connection_options))
            raise ConfigurationError(f"JdbcSink: expected JdbcConnectionOptions, found {found}{hint}")
        checked_guarantee(delivery_guarantee, "JdbcSink")
        statement = Statement.of(sql)
        execution = jdbc_execution_options or JdbcExecutionOptions.defaults()
        exactly_once = delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE
        if exactly_once and execution.batch_interval_ms != DEFAULT_BATCH_INTERVAL_MS:
            warn_no_effect(
                "with_batch_interval_ms()", "rows of an exactly-once sink are written when their checkpoint is durable"
            )
        owner = f"JdbcSink ({without_passwords(jdbc_connection_options.url).partition('?')[0]})"
        values = RowValues(type_info, statement.parameters, owner)
        # Made here, so that a bad URL, or a driver that is not installed, is an error of this line.
        form = open_database(jdbc_connection_options, owner).form_of(statement)
        return JdbcSink(statement, values, jdbc_connection_options, execution, delivery_guarantee, form)

    def __repr__(self) -> str:
        return f"{self._owner[:-1]}, {self.guarantee.name})"

    @property
    def _owner(self) -> str:
        return f"JdbcSink ({without_passwords(self._options.url).partition('?')[0]})"

    def create_writer(self, context: WriterContext) -> SinkWriter:
        if self.guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            return RowWriter(context, self._statement, self._values, self._form)
        database = open_database(self._options, self._owner)
        return DirectWriter(context, database, self._statement, self._values, self._execution)

    def create_committer(self) -> Committer:
        if self.guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            return MarkedCommitter(self._owner, self._options, self._execution, self._checks())
        return NothingToCommit(self._owner, self._options, self._checks())

    def _checks(self) -> Checks:
        return Checks(((self._statement, self._values.types),), expected=self._expected)
