"""Where tables are made and statements are run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.common.config.session_defaults import session_defaults
from headwater.common.config_options import LATE_ROWS_TABLE, RUNTIME_MODE
from headwater.common.configuration import Configuration
from headwater.common.errors import SqlError
from headwater.datastream.python_dependencies import PythonDependencies
from headwater.table.batch.connectors import sink_of, source_of
from headwater.table.batch.executor import get_executor
from headwater.table.batch.spark_sql import batch_query
from headwater.table.catalog.catalog import Catalog
from headwater.table.catalog.descriptor import CatalogDescriptor
from headwater.table.catalog.manager import CatalogManager
from headwater.table.catalog.objects import CatalogTable, CatalogView, Identifier, ResolvedSchema, TableColumn
from headwater.table.environment_settings import EnvironmentSettings
from headwater.table.explain_detail import ExplainDetail
from headwater.table.parser.ast import expressions as ex
from headwater.table.parser.ast import queries
from headwater.table.parser.ast import statements as ast
from headwater.table.parser.ast.base import Statement
from headwater.table.parser.parse import parse_statement
from headwater.table.parser.statement_grammar import StatementGrammar
from headwater.table.plan.context import BindContext
from headwater.table.plan.explain import explain
from headwater.table.plan.hints import table_options
from headwater.table.plan.insert_binder import bind_insert, sink
from headwater.table.plan.nodes import Plan, Sink
from headwater.table.plan.query_binder import bind_query
from headwater.table.plan.relation_binder import scan
from headwater.table.plan.table_binder import bind_columns, schema_of
from headwater.table.statement_set import StatementSet
from headwater.table.statements.create import CatalogChanges
from headwater.table.statements.show import describe, show
from headwater.table.stream import jobs
from headwater.table.stream.late_table import LateTable
from headwater.table.stream_result import JobResult, QueryResult
from headwater.table.table import Table
from headwater.table.table_config import TableConfig
from headwater.table.table_descriptor import TableDescriptor
from headwater.table.table_result import ResultKind, TableResult
from headwater.table.types.arrow import from_arrow, to_arrow
from headwater.table.types.logical import BIGINT, LogicalType, RowField, RowType
from headwater.table.user_functions import FunctionMethods
from headwater.table.values import columns_of, inferred_row_type

if TYPE_CHECKING:
    import pandas

_ONLY_BATCH = "a DataFrame of Spark is the result of a batch: use EnvironmentSettings.in_batch_mode(), or execute()"


def __getattr__(name: str) -> Any:
    """PyFlink has StreamTableEnvironment in this module, too."""
    if name == "StreamTableEnvironment":
        from headwater.table.stream_table_environment import StreamTableEnvironment

        return StreamTableEnvironment
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class TableEnvironment(FunctionMethods, PythonDependencies):
    """The entry point of SQL and the Table API. Make one with `TableEnvironment.create(settings)`."""

    def __init__(self, settings: EnvironmentSettings) -> None:
        self._configuration = session_defaults()
        self._configuration.add_all(settings.get_configuration())
        if settings.is_streaming_mode() != self._streaming:
            self._configuration.set(RUNTIME_MODE, "STREAMING" if settings.is_streaming_mode() else "BATCH")
        self._initial = dict(self._configuration.raw_items())
        self._unnamed_tables = 0
        self._catalogs = CatalogManager(settings.get_built_in_catalog_name(), settings.get_built_in_database_name())

    @staticmethod
    def create(environment_settings: EnvironmentSettings | Configuration) -> TableEnvironment:
        if isinstance(environment_settings, Configuration):
            mode = environment_settings.get(RUNTIME_MODE).upper()
            builder = EnvironmentSettings.new_instance().with_configuration(environment_settings)
            builder = builder.in_batch_mode() if mode == "BATCH" else builder.in_streaming_mode()
            return TableEnvironment(builder.build())
        return TableEnvironment(environment_settings)

    @property
    def _streaming(self) -> bool:
        """The mode of the next statement: SET 'execution.runtime-mode' changes it."""
        return self._configuration.get(RUNTIME_MODE) != "BATCH"

    def get_config(self) -> TableConfig:
        return TableConfig(self._configuration)

    # -- Statements

    def execute_sql(self, stmt: str) -> TableResult:
        """Run one statement. A query or INSERT of a batch has ended when this returns; on streams its job has begun."""
        return self._execute(parse_statement(stmt), stmt)

    def sql_query(self, query: str) -> Table:
        """A query as a Table. Nothing runs yet."""
        statement = parse_statement(query)
        if not isinstance(statement, ast.QueryStatement):
            raise SqlError(f"sql_query() takes a query, found {type(statement).__name__}; use execute_sql()")
        return Table(bind_query(statement.query, self._context(query)), self)

    def explain_sql(self, stmt: str, *extra_details: ExplainDetail) -> str:
        """The plan of a query or INSERT as text."""
        return self._explained(parse_statement(stmt), stmt, [detail.name for detail in extra_details])

    def create_statement_set(self) -> StatementSet:
        return StatementSet(self)

    def _context(self, sql: str) -> BindContext:
        return BindContext(sql, self._catalogs)

    def _execute(self, statement: Statement, sql: str) -> TableResult:
        match statement:
            case ast.QueryStatement():
                return self._collect(bind_query(statement.query, self._context(sql)))
            case ast.Insert():
                return self._write([self._bind_insert(statement, sql)])
            case ast.StatementSet():
                return self._write([self._bind_insert(each, sql) for each in statement.statements])
            case ast.Execute():
                return self._execute(statement.statement, sql)
            case ast.Explain():
                text = self._explained(statement.statement, sql, list(statement.details))
                return TableResult.of_text(["result"], [[text]])
            case ast.CreateTable() if statement.query is not None:
                return self._create_as(statement, sql)
            case ast.Show():
                return show(statement, self._catalogs, sql)
            case ast.Describe():
                return describe(statement, self._catalogs, sql)
            case ast.Use() if statement.kind == "CATALOG":
                self._catalogs.use_catalog(statement.names[0][0])
            case ast.Use() if statement.kind == "DATABASE":
                self._catalogs.use_database(statement.names[0])
            case ast.SetOption():
                if statement.key is None:
                    settings = self._configuration.to_dict()
                    return TableResult.of_text(
                        ["key", "value"], [[key, str(settings[key])] for key in sorted(settings)]
                    )
                self._configuration.set_string(statement.key, statement.value or "")
            case ast.ResetOption():
                self._reset(statement.key)
            case _:
                CatalogChanges(self._catalogs, sql).apply(statement)
        return TableResult.done()

    def _reset(self, key: str | None) -> None:
        """Settings as they were at the beginning: one, or all."""
        for each in [key] if key is not None else [*self._initial, *dict(self._configuration.raw_items())]:
            if each in self._initial:
                self._configuration.set_string(each, str(self._initial[each]))
            else:
                self._configuration.remove_config(each)

    def _bind_insert(self, insert: ast.Insert, sql: str) -> Sink:
        context = self._context(sql)
        identifier = self._catalogs.qualify(insert.table)
        try:
            table = self._sink_table(identifier, insert.table)
        except SqlError as error:
            raise context.error(str(error), insert.table_span) from None
        options = table_options(insert.hints, context)
        if options:
            table = replace(table, options={**table.options, **options})
        return bind_insert(insert, identifier, table, context)

    def _sink_table(self, identifier: Identifier, name: Sequence[str]) -> CatalogTable:
        table = self._catalogs.find(identifier)
        if table is None:
            raise SqlError(self._catalogs.unknown(name, identifier))
        if isinstance(table, CatalogView):
            raise SqlError(f"'{identifier}' is a view: nothing can be inserted into it")
        return table

    def _create_as(self, statement: ast.CreateTable, sql: str) -> TableResult:
        """CREATE TABLE AS: the table is there only if its rows are; OR REPLACE: else the one before it stays."""
        assert statement.query is not None
        plan = bind_query(statement.query, self._context(sql))
        schema = schema_of(plan)
        if statement.column_names:
            columns = [schema.column(name) for name in statement.column_names]
            if len(columns) != len(schema.columns) or None in columns:
                raise SqlError(f"CREATE TABLE AS: the columns of the query are {', '.join(schema.names())}")
            schema = ResolvedSchema(tuple(column for column in columns if column is not None))
        before = self._catalogs.find(self._catalogs.qualify(statement.name)) if statement.or_replace else None
        identifier = CatalogChanges(self._catalogs, sql).create_table(statement, schema)
        if identifier is None:
            return TableResult.done()
        try:
            table = self._sink_table(identifier, statement.name)
            return self._write([sink(plan, identifier, table, columns=list(schema_of(plan).names()))])
        except Exception:
            if before is not None:
                self._catalogs.replace(identifier, before)
            else:
                self._catalogs.drop(identifier, view=False, temporary=statement.temporary)
            raise

    # -- Running

    def _collect(self, plan: Plan) -> TableResult:
        if self._streaming:
            fields = tuple(RowField(column.name, column.type) for column in plan.columns)
            return QueryResult(
                RowType(fields=fields, nullable=False), jobs.collect(plan, self._configuration, self._late_table())
            )
        query = batch_query(plan)
        for read in query.sources.values():
            source_of(read.identifier, read.table)  # a wrong option is an error before Spark starts
        table = get_executor().collect(query, self._configuration)
        return TableResult(query.row_type, table, ResultKind.SUCCESS_WITH_CONTENT)

    def _dataframe(self, plan: Plan) -> Any:
        if self._streaming:
            raise SqlError(_ONLY_BATCH)
        return get_executor().dataframe(batch_query(plan), self._configuration)

    def _write(self, sinks: Sequence[Sink]) -> TableResult:
        names = [str(each.identifier) for each in sinks]
        type_ = RowType(fields=tuple(RowField(name, BIGINT) for name in names), nullable=False)
        counts = pa.table([pa.array([-1], pa.int64()) for _ in names], names=names)  # Flink's "unknown", too
        if self._streaming:
            return JobResult(type_, counts, jobs.insert(sinks, self._configuration, self._late_table()))
        prepared = [(batch_query(each.input), sink_of(each.identifier, each.table), each) for each in sinks]
        for query, _, _ in prepared:
            for read in query.sources.values():
                source_of(read.identifier, read.table)
        for query, target, each in prepared:
            get_executor().write(query, target, each.overwrite, self._configuration)
        return TableResult(type_, counts, ResultKind.SUCCESS_WITH_CONTENT)

    def _late_table(self) -> LateTable | None:
        """The table that keeps late rows, if the settings name one."""
        name = self._configuration.get(LATE_ROWS_TABLE)
        if not name:
            return None
        identifier = self._catalogs.qualify(_parts(name))
        return LateTable(identifier, self._sink_table(identifier, _parts(name)))

    def _insert_plan(self, plan: Plan, target: str | TableDescriptor, overwrite: bool) -> TableResult:
        return self._write([self._sink_of_plan(plan, target, overwrite)])

    def _sink_of_plan(self, plan: Plan, target: str | TableDescriptor, overwrite: bool) -> Sink:
        if isinstance(target, TableDescriptor):
            identifier = Identifier("*anonymous*", "*anonymous*", target.get_options().get("connector", ""))
            schema = self._schema_of_descriptor(target) if target.get_schema() is not None else schema_of(plan)
            keys = tuple(target.get_partition_keys())
            return sink(plan, identifier, CatalogTable(schema, target.get_options(), keys), overwrite)
        parts = _parts(target)
        identifier = self._catalogs.qualify(parts)
        return sink(plan, identifier, self._sink_table(identifier, parts), overwrite)

    def _explained(self, statement: Statement, sql: str, details: list[str]) -> str:
        match statement:
            case ast.QueryStatement():
                return self._explain(bind_query(statement.query, self._context(sql)), details)
            case ast.Insert():
                return self._explain(self._bind_insert(statement, sql), details)
            case ast.StatementSet():
                return "\n".join(self._explain(self._bind_insert(each, sql), details) for each in statement.statements)
        raise SqlError("EXPLAIN takes a query, an INSERT or a STATEMENT SET")

    def _explain(self, plan: Plan, details: list[str]) -> str:
        if self._streaming:
            return jobs.explained(plan, self._configuration, details)
        if "JSON_EXECUTION_PLAN" in details:
            raise SqlError("JSON_EXECUTION_PLAN is not there: Spark has no such plan")
        query = batch_query(plan.input if isinstance(plan, Sink) else plan)
        parts = [f"== Typed Plan ==\n{explain(plan)}", f"== Spark SQL ==\n{query.sql}\n"]
        if "ESTIMATED_COST" in details:
            parts.append(f"== Spark Plan ==\n{get_executor().explain(query, self._configuration)}")
        return "\n".join(parts)

    # -- Tables of values

    def from_elements(
        self,
        elements: Iterable[Any],
        schema: LogicalType | Sequence[str] | None = None,
        verify_schema: bool = True,
    ) -> Table:
        """A table of Python values: tuples, Rows or dicts. `schema` has names, or names and types."""
        rows = list(elements)
        if isinstance(schema, LogicalType) and not isinstance(schema, RowType):
            schema = RowType(fields=(RowField("f0", schema),), nullable=False)
        row_type = schema if isinstance(schema, RowType) else inferred_row_type(rows, schema)
        arrow = columns_of(rows, row_type, verify_schema)
        return self._of_rows(arrow, row_type)

    def from_pandas(
        self, pdf: pandas.DataFrame, schema: RowType | Sequence[str] | None = None, splits_num: int = 1
    ) -> Table:
        """A table of a DataFrame of pandas. `splits_num` does nothing: Spark splits."""
        arrow = pa.Table.from_pandas(pdf, preserve_index=False)
        if isinstance(schema, RowType):
            row_type = schema
        else:
            names = list(schema) if schema is not None else arrow.column_names
            if len(names) != arrow.num_columns:
                raise SqlError(f"from_pandas(): {len(names)} names for {arrow.num_columns} columns")
            fields = (RowField(name, from_arrow(each.type)) for name, each in zip(names, arrow.schema, strict=True))
            row_type = RowType(fields=tuple(fields), nullable=False)
        columns = [
            column.cast(to_arrow(each.type)) for column, each in zip(arrow.columns, row_type.fields, strict=True)
        ]
        return self._of_rows(pa.table(columns, names=[each.name for each in row_type.fields]), row_type)

    def from_dataframe(self, df: Any) -> Table:
        """A table of a DataFrame of Spark. It is read when the query runs."""
        if not hasattr(df, "isStreaming"):
            raise SqlError(f"from_dataframe() expects a Spark DataFrame, found {type(df).__name__}")
        if df.isStreaming:
            raise SqlError("a streaming DataFrame is no batch table")
        schema = get_executor().schema_of(df)
        try:
            fields = tuple(RowField(each.name, from_arrow(each.type, each.nullable)) for each in schema)
        except TypeError as error:
            raise SqlError(f"from_dataframe(): {error}") from None
        return self._of_rows(df, RowType(fields=fields, nullable=False))

    def _of_rows(self, rows: Any, row_type: RowType) -> Table:
        schema = ResolvedSchema(tuple(TableColumn(each.name, each.type) for each in row_type.fields))
        identifier = Identifier("*anonymous*", "*anonymous*", "values")
        return Table(scan(identifier, CatalogTable(schema, rows=rows), self._context(""), bind_query), self)

    # -- Catalogs

    def from_path(self, path: str) -> Table:
        """A table or view of the catalog."""
        query = queries.Select((queries.SelectItem(ex.Star()),), queries.TableName(_parts(path)))
        return Table(bind_query(query, self._context("")), self)

    def from_descriptor(self, descriptor: TableDescriptor) -> Table:
        schema = self._schema_of_descriptor(descriptor)
        identifier = Identifier("*anonymous*", "*anonymous*", descriptor.get_options().get("connector", ""))
        table = CatalogTable(schema, descriptor.get_options(), tuple(descriptor.get_partition_keys()))
        return Table(scan(identifier, table, self._context(""), bind_query), self)

    def _schema_of_descriptor(self, descriptor: TableDescriptor) -> ResolvedSchema:
        schema = descriptor.get_schema()
        if schema is None:
            raise SqlError("the descriptor needs a schema: TableDescriptor…schema(Schema.new_builder()…build())")
        return bind_columns(schema.columns, schema.watermark, schema.keys, self._context(""))

    def create_table(
        self,
        path: str,
        descriptor: TableDescriptor,
        ignoreIfExists: bool = False,
    ) -> bool:
        return self._create_table(path, descriptor, False, ignoreIfExists)

    def create_temporary_table(
        self,
        path: str,
        descriptor: TableDescriptor,
        ignoreIfExists: bool = False,
    ) -> None:
        self._create_table(path, descriptor, True, ignoreIfExists)

    def _create_table(self, path: str, descriptor: TableDescriptor, temporary: bool, if_not_exists: bool) -> bool:
        schema = self._schema_of_descriptor(descriptor)
        keys = tuple(descriptor.get_partition_keys())
        table = CatalogTable(schema, descriptor.get_options(), keys, descriptor.get_comment())
        return self._catalogs.create(self._catalogs.qualify(_parts(path)), table, temporary, if_not_exists)

    def create_temporary_view(self, view_path: str, table: Table) -> None:
        """Give a Table a name for SQL."""
        if not isinstance(table, Table):
            raise SqlError(f"create_temporary_view() takes a Table, found {type(table).__name__}")
        view = CatalogView(schema_of(table._plan), plan=table._plan)
        self._catalogs.create(self._catalogs.qualify(_parts(view_path)), view, temporary=True)

    def _unnamed(self, table: Table) -> str:
        """Register a table under a name of its own."""
        name = f"UnnamedTable${self._unnamed_tables}"
        self._unnamed_tables += 1
        TableEnvironment.create_temporary_view(self, f"`{name}`", table)
        return name

    def create_view(self, view_path: str, table: Table, ignore_if_exists: bool = False) -> bool:
        view = CatalogView(schema_of(table._plan), plan=table._plan)
        return self._catalogs.create(self._catalogs.qualify(_parts(view_path)), view, False, ignore_if_exists)

    def drop_temporary_view(self, view_path: str) -> bool:
        return self._catalogs.drop(self._catalogs.qualify(_parts(view_path)), True, True, if_exists=True)

    def drop_temporary_table(self, table_path: str) -> bool:
        return self._catalogs.drop(self._catalogs.qualify(_parts(table_path)), False, True, if_exists=True)

    def drop_table(self, table_path: str, ignore_if_not_exists: bool = True) -> bool:
        identifier = self._catalogs.qualify(_parts(table_path))
        return self._catalogs.drop(identifier, False, False, ignore_if_not_exists)

    def drop_view(self, view_path: str, ignore_if_not_exists: bool = True) -> bool:
        identifier = self._catalogs.qualify(_parts(view_path))
        return self._catalogs.drop(identifier, True, False, ignore_if_not_exists)

    def create_catalog(self, catalog_name: str, catalog_descriptor: CatalogDescriptor) -> None:
        """As CREATE CATALOG: its kind is the option `type`."""
        options = tuple(catalog_descriptor.configuration.to_dict().items())
        self._execute(ast.CreateCatalog(catalog_name, catalog_descriptor.comment, options), "")

    def register_catalog(self, catalog_name: str, catalog: Catalog) -> None:
        self._catalogs.register_catalog(catalog_name, catalog)

    def get_catalog(self, catalog_name: str) -> Catalog:
        return self._catalogs.catalog(catalog_name)

    def list_catalogs(self) -> list[str]:
        return self._catalogs.list_catalogs()

    def list_databases(self) -> list[str]:
        return self._catalogs.catalog(self._catalogs.current_catalog).list_databases()

    def list_tables(self) -> list[str]:
        return self._catalogs.list_tables(self._catalogs.current_catalog, self._catalogs.current_database)

    def list_views(self) -> list[str]:
        return self._catalogs.list_views(self._catalogs.current_catalog, self._catalogs.current_database)

    def list_temporary_tables(self) -> list[str]:
        return self._catalogs.list_temporary()

    def list_temporary_views(self) -> list[str]:
        return self._catalogs.list_temporary(views_only=True)

    def get_current_catalog(self) -> str:
        return self._catalogs.current_catalog

    def get_current_database(self) -> str:
        return self._catalogs.current_database

    def use_catalog(self, catalog_name: str) -> None:
        self._catalogs.use_catalog(catalog_name)

    def use_database(self, database_name: str) -> None:
        self._catalogs.use_database((database_name,))


def _parts(path: str) -> tuple[str, ...]:
    """The parts of a path such as `db.t` or `` `a b`.t ``."""
    grammar = StatementGrammar(path)
    parts = grammar.dotted("a name")
    if not grammar.at_end():
        raise grammar.wanted("the end of the name")
    return parts
