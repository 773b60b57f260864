"""Tables and DataStreams in one program."""

from __future__ import annotations

from typing import Any

from headwater.common.config_options import LATE_ROWS_TABLE, RUNTIME_MODE
from headwater.common.errors import SqlError
from headwater.common.typeinfo import TypeInformation
from headwater.datastream.data_stream import DataStream
from headwater.datastream.stream_execution_environment import StreamExecutionEnvironment
from headwater.graph.transformation import source_names
from headwater.table.catalog.objects import CatalogTable, Identifier, ResolvedSchema, TableColumn
from headwater.table.changelog_mode import ChangelogMode
from headwater.table.environment_settings import EnvironmentSettings
from headwater.table.expression import Expression
from headwater.table.expressions import col
from headwater.table.parser.ast import expressions as ex
from headwater.table.plan.nodes import Sink
from headwater.table.plan.query_binder import bind_query
from headwater.table.plan.relation_binder import scan
from headwater.table.plan.table_binder import bind_columns
from headwater.table.schema import Schema
from headwater.table.stream import jobs
from headwater.table.stream.connectors.contract import ChangelogMode as Mode
from headwater.table.stream.data_streams import check_known, is_known, is_row, records, row_type_of, stream_table
from headwater.table.stream.planner_sinks import plan_sink
from headwater.table.stream.translate import Translator
from headwater.table.table import Table
from headwater.table.table_environment import TableEnvironment
from headwater.table.types.logical import RowField, RowType
from headwater.table.types.type_information import to_type_information


class StreamTableEnvironment(TableEnvironment):
    """A TableEnvironment on top of a StreamExecutionEnvironment.

    `to_data_stream` and `to_changelog_stream` add to the job that the other environment's `execute()` runs; statements
    that INSERT, and queries that are executed, are jobs of their own.
    """

    def __init__(self, environment: StreamExecutionEnvironment, settings: EnvironmentSettings) -> None:
        super().__init__(settings)
        if not settings.is_streaming_mode():
            raise SqlError("a StreamTableEnvironment streams; make a TableEnvironment for batch mode")
        self._environment = environment
        environment._configuration.add_all(settings.get_configuration())
        self._configuration = environment._configuration
        self._initial = dict(self._configuration.raw_items())
        self._planner = jobs.planner_of(self._configuration)
        self._translator = Translator()
        self._streams: dict[str, int] = {}

    @property
    def _streaming(self) -> bool:
        """Always: 'execution.runtime-mode' = 'BATCH' is a job of DataStream's that gives its results at the end."""
        return True

    @staticmethod
    def create(  # type: ignore[override]
        stream_execution_environment: StreamExecutionEnvironment | None = None,
        environment_settings: EnvironmentSettings | None = None,
    ) -> StreamTableEnvironment:
        environment = stream_execution_environment
        if environment is None:
            environment = StreamExecutionEnvironment.get_execution_environment()
        if environment._value(RUNTIME_MODE) == "BATCH":
            raise SqlError("a StreamTableEnvironment streams; make a TableEnvironment for batch mode")
        return StreamTableEnvironment(environment, environment_settings or EnvironmentSettings.in_streaming_mode())

    # -- From streams

    def from_data_stream(self, data_stream: DataStream, *fields_or_schema: Expression | Schema) -> Table:
        """A table of a stream's records, which are inserted rows."""
        return self._from_stream(data_stream, fields_or_schema, Mode.APPEND)

    def from_changelog_stream(
        self, data_stream: DataStream, schema: Schema | None = None, changelog_mode: ChangelogMode | None = None
    ) -> Table:
        """A table of a stream of Rows whose kinds say what happens to it."""
        mode = (changelog_mode or ChangelogMode.all()).mode
        return self._from_stream(data_stream, () if schema is None else (schema,), mode)

    def _from_stream(self, stream: DataStream, given: tuple[Any, ...], mode: Mode) -> Table:
        if not isinstance(stream, DataStream):
            raise SqlError(f"a DataStream is needed, found {type(stream).__name__}")
        name = self._name_of(stream)
        row_type = row_type_of(stream)
        if len(given) == 1 and isinstance(given[0], Schema):
            schema = self._stream_schema(given[0], row_type, stream)
        else:
            schema = self._plain_schema(given, row_type)
        physical = [each for each in schema.columns if each.is_physical()]
        fields = [each.name for each in row_type.fields]
        by_name = is_row(stream) and all(each.name in fields for each in physical)
        places: list[int | None] = [
            (fields.index(each.name) if by_name else place) if is_row(stream) or len(physical) > 1 else None
            for place, each in enumerate(physical)
        ]
        made = stream_table(stream, schema, places, mode, name)
        identifier = Identifier("*anonymous*", "*anonymous*", name)
        table = CatalogTable(schema, rows=made)
        whole = Table(scan(identifier, table, self._context(""), bind_query), self)
        if given and isinstance(given[0], Schema) and _physical(given[0]):
            declared = [each.name for each in given[0].columns]
            return whole.select(*declared) if len(declared) < len(schema.columns) else whole
        return whole

    def _name_of(self, stream: DataStream) -> str:
        """A name that is the same in every run of the program: state is found by it."""
        found = source_names(stream._transformation) or "stream"
        count = self._streams[found] = self._streams.get(found, 0) + 1
        return found if count == 1 else f"{found}-{count}"

    def _stream_schema(self, schema: Schema, row_type: RowType, stream: DataStream) -> ResolvedSchema:
        """The declared columns, after those fields of the stream that only computed columns may refer to.

        Without declared physical columns, all fields of the stream are columns of the table.
        """
        physical = _physical(schema)
        unsaid: list[RowField] = []
        if not physical:
            check_known(row_type)
            unsaid = list(row_type.fields)
        elif is_row(stream) and physical <= {each.name for each in row_type.fields}:
            declared = {each.name for each in schema.columns}
            unsaid = [each for each in row_type.fields if each.name not in declared and is_known(each.type)]
        base = ResolvedSchema(tuple(TableColumn(each.name, each.type) for each in unsaid))
        return bind_columns(schema.columns, schema.watermark, schema.keys, self._context(""), base)

    def _plain_schema(self, fields: tuple[Any, ...], row_type: RowType) -> ResolvedSchema:
        check_known(row_type)
        columns = list(row_type.fields)
        if fields:
            chosen = []
            for place, each in enumerate(fields):
                node = each.node if isinstance(each, Expression) else None
                if not isinstance(node, ex.Name):
                    raise SqlError("from_data_stream() takes a Schema, or names of columns such as col('a')")
                name = node.parts[-1]
                known = next((column for column in columns if column.name == name), None)
                kind = known.type if known is not None else columns[place].type if place < len(columns) else None
                if kind is None:
                    raise SqlError(f"from_data_stream(): there is no field for '{name}'")
                chosen.append(RowField(name, kind))
            columns = chosen
        return ResolvedSchema(tuple(TableColumn(each.name, each.type) for each in columns))

    def create_temporary_view(
        self, view_path: str, table_or_data_stream: Table | DataStream, *fields_or_schema: Expression | Schema
    ) -> None:
        """Give a Table, or a DataStream, a name for SQL."""
        if isinstance(table_or_data_stream, DataStream):
            table_or_data_stream = self.from_data_stream(table_or_data_stream, *fields_or_schema)
        super().create_temporary_view(view_path, table_or_data_stream)

    # -- To streams

    def to_data_stream(self, table: Table) -> DataStream:
        """The rows of a table to which rows are only added. An event time becomes the records' timestamp."""
        return self._to_stream(table, changelog=False)

    def to_changelog_stream(
        self, table: Table, target_schema: Schema | None = None, changelog_mode: ChangelogMode | None = None
    ) -> DataStream:
        """The changes of a table: Rows with kinds.

        The columns are cast to those of `target_schema`, by place. `ChangelogMode.upsert()` needs its primary key:
        rows of the same key replace each other, and there is no UPDATE_BEFORE.
        """
        mode = Mode.ALL if changelog_mode is None else changelog_mode.mode
        key: tuple[str, ...] = ()
        if target_schema is not None:
            schema = bind_columns(target_schema.columns, None, target_schema.keys, self._context(""))
            table, key = self._fitted(table, schema), schema.primary_key
        if mode is Mode.UPSERT and not key:
            raise SqlError(
                "to_changelog_stream(): ChangelogMode.upsert() needs a target_schema with a primary key:"
                " Schema.new_builder()….primary_key(…)"
            )
        return self._to_stream(table, changelog=mode is not Mode.APPEND, upsert_key=key if mode is Mode.UPSERT else ())

    def _fitted(self, table: Table, schema: ResolvedSchema) -> Table:
        """The columns of a table with the names and types of a schema."""
        columns = table._plan.columns
        if len(columns) != len(schema.columns) or not all(each.is_physical() for each in schema.columns):
            raise SqlError(
                f"to_changelog_stream(): the table has {len(columns)} columns ({', '.join(c.name for c in columns)}),"
                f" the target_schema {len(schema.columns)} ({', '.join(schema.names())}); each needs a physical one"
            )
        fields = []
        for column, wanted in zip(columns, schema.columns, strict=True):
            found = col(column.name)
            same = column.type.with_nullable(True) == wanted.type.with_nullable(True)
            fields.append((found if same else found.cast(wanted.type)).alias(wanted.name))
        return table.select(*fields)

    def to_append_stream(self, table: Table, type_info: TypeInformation) -> DataStream:
        """As `to_data_stream`."""
        return self.to_data_stream(table)

    def to_retract_stream(self, table: Table, type_info: TypeInformation) -> DataStream:
        """Tuples of (True for a row that comes, False for one that goes) and the row."""
        return self.to_changelog_stream(table).map(_flagged)

    def _to_stream(self, table: Table, changelog: bool, upsert_key: tuple[str, ...] = ()) -> DataStream:
        self._no_late_table()
        made = records(self._planner, self._planner.plan(table._plan), changelog, upsert_key)
        node = self._translator.node(made)
        node.output_type = to_type_information(table.get_schema())
        return DataStream(self._environment, node)

    def _no_late_table(self) -> None:
        if self._late_table() is not None:
            raise SqlError(
                f"'{LATE_ROWS_TABLE.key}' is for the jobs of INSERTs and queries, not for tables in the job of a"
                " StreamExecutionEnvironment; reset it"
            )

    def _attach(self, sinks: list[Sink]) -> None:
        """Make INSERTs part of the environment's job."""
        self._no_late_table()
        for each in sinks:
            self._environment._add_operator(self._translator.sink(plan_sink(self._planner, each)))


def _physical(schema: Schema) -> set[str]:
    return {each.name for each in schema.columns if each.type is not None and not each.metadata}


def _flagged(row: Any) -> tuple[bool, Any]:
    return row.get_row_kind().value in (0, 2), row
