"""A table of the Table API: a plan, and methods that make larger plans of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.common.errors import SqlError
from headwater.table.catalog.objects import ResolvedSchema
from headwater.table.column_selection import expanded
from headwater.table.expression import Expression, node_of
from headwater.table.parser.ast import expressions as ex
from headwater.table.parser.ast import queries as ast
from headwater.table.parser.ast.base import Expression as Node
from headwater.table.parser.ast.base import Query
from headwater.table.plan.context import BindContext
from headwater.table.plan.given import Given
from headwater.table.plan.nodes import Plan, Sort
from headwater.table.plan.projections import renamed
from headwater.table.plan.query_binder import bind_query, set_operation
from headwater.table.plan.renumber import renumbered
from headwater.table.plan.table_binder import schema_of
from headwater.table.table_pipeline import TablePipeline
from headwater.table.table_result import TableResult
from headwater.table.table_schema import TableSchema
from headwater.table.types.logical import RowField
from headwater.table.user.table_calls import aggregated, flat_mapped, lateral, mapped
from headwater.table.window import GroupWindow, OverWindow, resolve_window_columns, window_call

if TYPE_CHECKING:
    import pandas

    from headwater.table.explain_detail import ExplainDetail
    from headwater.table.table_descriptor import TableDescriptor
    from headwater.table.table_environment import TableEnvironment
    from headwater.table.udf import UserDefinedFunctionWrapper

_ALL = (ast.SelectItem(ex.Star()),)


class Table:
    """Rows that a query describes. Nothing runs before `execute`, `to_pandas`, `execute_insert` or `to_dataframe`.

    Methods that take columns take expressions; a name alone is `col(name)`.
    """

    def __init__(self, plan: Plan, environment: TableEnvironment) -> None:
        self._plan = plan
        self._environment = environment
        self._name: str | None = None

    def _of(self, query: Query) -> Table:
        return Table(bind_query(query, BindContext("", self._environment._catalogs)), self._environment)

    def _given(self) -> Given:
        return Given(self._plan)

    def __str__(self) -> str:
        """Give the table a name for SQL, if it has none, and return it: `f"SELECT * FROM {table}"`."""
        if self._name is None:
            self._name = self._environment._unnamed(self)
        return self._name

    def _items(self, fields: tuple[Expression | str, ...]) -> tuple[ast.SelectItem, ...]:
        names = [column.name for column in self._plan.columns]
        items = []
        for field in fields:
            alias = field.name if isinstance(field, Expression) else None
            for node in expanded(_node(field), names):
                items.append(ast.SelectItem(ex.Star() if node == ex.Name(("*",)) else node, alias))
        return tuple(items)

    # -- Columns

    def get_schema(self) -> TableSchema:
        """The columns with their types."""
        columns = self._plan.columns
        return TableSchema.of([column.name for column in columns], [column.type for column in columns])

    def get_resolved_schema(self) -> ResolvedSchema:
        """The same as columns of a catalog."""
        return schema_of(self._plan)

    def print_schema(self) -> None:
        """Write the columns to standard output, as Flink does."""
        lines = ",\n".join(f"  {RowField(column.name, column.type).sql()}" for column in self._plan.columns)
        print(f"(\n{lines}\n)")

    def __getattr__(self, name: str) -> Expression:
        """A column as an attribute: `table.id`."""
        if not name.startswith("_") and any(column.name == name for column in self._plan.columns):
            return Expression(ex.Name((name,)))
        known = ", ".join(column.name for column in self._plan.columns)
        raise AttributeError(f"there is no column or method '{name}'; the columns are {known}")

    def select(self, *fields: Expression | str) -> Table:
        return self._of(ast.Select(self._items(fields), self._given()))

    def alias(self, field: str, *fields: str) -> Table:
        """The same rows; the first columns have new names."""
        names = [field, *fields]
        columns = self._plan.columns
        if len(names) > len(columns):
            raise SqlError(f"alias(): {len(names)} names for {len(columns)} columns")
        rest = [column.name for column in columns[len(names) :]]
        return Table(renamed(self._plan, [*names, *rest]), self._environment)

    def add_columns(self, *fields: Expression) -> Table:
        return self._of(ast.Select((*_ALL, *self._items(fields)), self._given()))

    def add_or_replace_columns(self, *fields: Expression) -> Table:
        new = {item.alias or _name_of(item.expression): item for item in self._items(fields)}
        items = [new.pop(column.name, _column(column.name)) for column in self._plan.columns]
        return self._of(ast.Select((*items, *new.values()), self._given()))

    def rename_columns(self, *fields: Expression) -> Table:
        """`rename_columns(col("a").alias("b"))`"""
        new = {_name_of(item.expression): item.alias for item in self._items(fields)}
        self._check(new)
        names = [new.get(column.name) or column.name for column in self._plan.columns]
        return Table(renamed(self._plan, names), self._environment)

    def drop_columns(self, *fields: Expression | str) -> Table:
        dropped = {_name_of(item.expression) for item in self._items(fields)}
        self._check(dropped)
        items = tuple(_column(column.name) for column in self._plan.columns if column.name not in dropped)
        return self._of(ast.Select(items, self._given()))

    def _check(self, names: Any) -> None:
        known = [column.name for column in self._plan.columns]
        for name in names:
            if name not in known:
                raise SqlError(f"there is no column '{name}'; the columns are {', '.join(known)}")

    # -- Rows

    def where(self, predicate: Expression) -> Table:
        return self._of(ast.Select(_ALL, self._given(), where=node_of(predicate)))

    def filter(self, predicate: Expression) -> Table:
        return self.where(predicate)

    def distinct(self) -> Table:
        return self._of(ast.Select(_ALL, self._given(), distinct=True))

    def order_by(self, *fields: Expression | str) -> Table:
        items = tuple(
            field.order if isinstance(field, Expression) and field.order is not None else ex.SortItem(_node(field))
            for field in fields
        )
        return self._of(ast.Ordered(ast.Select(_ALL, self._given()), items))

    def offset(self, offset: int) -> Table:
        return self._limited(offset, None)

    def fetch(self, fetch: int) -> Table:
        return self._limited(None, fetch)

    def limit(self, fetch: int, offset: int = 0) -> Table:
        return self._limited(offset, fetch)

    def _limited(self, offset: int | None, limit: int | None) -> Table:
        """After `order_by`, the sorted rows are cut: the limit belongs to that order."""
        plan = self._plan
        if isinstance(plan, Sort) and plan.limit is None and (plan.offset is None or offset is None):
            kept = offset if plan.offset is None else plan.offset
            return Table(Sort(plan.input, plan.keys, kept or None, limit), self._environment)
        return Table(Sort(plan, (), offset or None, limit), self._environment)

    # -- Groups

    def group_by(self, *fields: Expression | str) -> GroupedTable:
        names = [column.name for column in self._plan.columns]
        return GroupedTable(self, tuple(node for field in fields for node in expanded(_node(field), names)))

    def window(self, window: GroupWindow) -> GroupWindowedTable:
        """Group rows by windows of time: `window(Tumble.over(lit(1).hours).on(col("ts")).alias("w"))`"""
        return GroupWindowedTable(self, window)

    def over_window(self, *over_windows: OverWindow) -> OverWindowedTable:
        """Name windows of the rows around each row, for `select(col("a").sum.over(col("w")))`."""
        return OverWindowedTable(self, over_windows)

    # -- Several tables

    def join(self, right: Table, join_predicate: Expression | None = None) -> Table:
        return self._join("INNER", right, join_predicate)

    def left_outer_join(self, right: Table, join_predicate: Expression | None = None) -> Table:
        return self._join("LEFT", right, join_predicate)

    def right_outer_join(self, right: Table, join_predicate: Expression) -> Table:
        return self._join("RIGHT", right, join_predicate)

    def full_outer_join(self, right: Table, join_predicate: Expression) -> Table:
        return self._join("FULL", right, join_predicate)

    def _join(self, kind: str, right: Table, predicate: Expression | None) -> Table:
        mine = {column.name for column in self._plan.columns}
        both = [column.name for column in right._plan.columns if column.name in mine]
        if both:
            raise SqlError(f"both tables have a column '{both[0]}'; rename one with alias() or rename_columns()")
        condition = node_of(predicate) if predicate is not None else ex.Boolean(True)
        return self._of(ast.Select(_ALL, ast.Join(kind, self._given(), right._given(), condition)))

    def union(self, right: Table) -> Table:
        return self._set("UNION", right, False)

    def union_all(self, right: Table) -> Table:
        return self._set("UNION", right, True)

    def intersect(self, right: Table) -> Table:
        return self._set("INTERSECT", right, False)

    def intersect_all(self, right: Table) -> Table:
        return self._set("INTERSECT", right, True)

    def minus(self, right: Table) -> Table:
        return self._set("EXCEPT", right, False)

    def minus_all(self, right: Table) -> Table:
        return self._set("EXCEPT", right, True)

    def _set(self, operator: str, right: Table, everything: bool) -> Table:
        plan = set_operation(operator, everything, self._plan, renumbered(right._plan))
        return Table(plan, self._environment)

    # -- Functions of users

    def join_lateral(
        self, table_function_call: Expression | UserDefinedFunctionWrapper, join_predicate: Expression | None = None
    ) -> Table:
        """Each row with each row that a table function gives for it: `join_lateral(split(col("s")).alias("word"))`

        A function that is not called gets the whole row.
        """
        query = lateral(self._given(), table_function_call, "INNER", join_predicate, self.get_schema())
        return self._of(query)

    def left_outer_join_lateral(
        self, table_function_call: Expression | UserDefinedFunctionWrapper, join_predicate: Expression | None = None
    ) -> Table:
        """The same, with NULLs for a row for which the function gives none."""
        query = lateral(self._given(), table_function_call, "LEFT", join_predicate, self.get_schema())
        return self._of(query)

    def map(self, func: Expression | UserDefinedFunctionWrapper) -> Table:
        """What a scalar function gives for each row; the fields of a ROW become columns."""
        return self._of(mapped(self._given(), func, self.get_schema()))

    def flat_map(self, func: Expression | UserDefinedFunctionWrapper) -> Table:
        """The rows that a table function gives for each row."""
        return self._of(flat_mapped(self._given(), func, self.get_schema()))

    def aggregate(self, func: Expression | UserDefinedFunctionWrapper) -> AggregatedTable:
        """What an aggregate gives for all rows."""
        return self.group_by().aggregate(func)

    def flat_aggregate(self, func: Expression | UserDefinedFunctionWrapper) -> AggregatedTable:
        """The rows that a table aggregate gives for all rows."""
        return self.group_by().flat_aggregate(func)

    # -- Running it

    def execute(self) -> TableResult:
        """Run the query and return its rows."""
        return self._environment._collect(self._plan)

    def to_pandas(self) -> pandas.DataFrame:
        """Run the query; its rows as a DataFrame of pandas."""
        return self.execute().to_arrow().to_pandas()

    def to_dataframe(self) -> Any:
        """The query as a DataFrame of Spark."""
        return self._environment._dataframe(self._plan)

    def execute_insert(self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False) -> TableResult:
        """Run the query into a table."""
        return self._environment._insert_plan(self._plan, table_path_or_descriptor, overwrite)

    def insert_into(self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False) -> TablePipeline:
        """The insertion of the rows into a table, for `execute()` or `StatementSet.add`."""
        sink = self._environment._sink_of_plan(self._plan, table_path_or_descriptor, overwrite)
        return TablePipeline(sink, self._environment)

    def explain(self, *extra_details: ExplainDetail) -> str:
        """The plan as text."""
        return self._environment._explain(self._plan, [detail.name for detail in extra_details])

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        print(self.explain(*extra_details))


class GroupedTable:
    """A table with groups; `select` gives one row for each."""

    def __init__(self, table: Table, keys: tuple[Node, ...]) -> None:
        self._table = table
        self._keys = keys

    def select(self, *fields: Expression | str) -> Table:
        return self._table._of(ast.Select(self._table._items(fields), self._table._given(), group_by=self._keys))

    def aggregate(self, func: Expression | UserDefinedFunctionWrapper) -> AggregatedTable:
        """What an aggregate gives for each group: the columns of the groups, then its fields, for `select`."""
        return AggregatedTable(self._table, self._keys, func, flat=False)

    def flat_aggregate(self, func: Expression | UserDefinedFunctionWrapper) -> AggregatedTable:
        """The rows that a table aggregate gives for each group."""
        return AggregatedTable(self._table, self._keys, func, flat=True)


class AggregatedTable:
    """A table with groups and a user's aggregate; `select` chooses among the groups and what it gives."""

    def __init__(
        self, table: Table, keys: tuple[Node, ...], func: Expression | UserDefinedFunctionWrapper, flat: bool
    ) -> None:
        self._table = table
        query = aggregated(table._given(), func, keys, table.get_schema(), flat)
        self._result = table._of(query)

    def select(self, *fields: Expression | str) -> Table:
        return self._result.select(*fields)


class GroupWindowedTable:
    """A table with a window; `group_by` must name it."""

    def __init__(self, table: Table, window: GroupWindow) -> None:
        self._table = table
        self._window = window

    def group_by(self, *fields: Expression | str) -> WindowGroupedTable:
        nodes = [_node(field) for field in fields]
        name = ex.Name((self._window.name,))
        if name not in nodes:
            raise SqlError(f"group_by() after window() must name the window: col('{self._window.name}')")
        keys = tuple(window_call(self._window) if node == name else node for node in nodes)
        return WindowGroupedTable(self._table, self._window, keys)


class WindowGroupedTable:
    """A table with groups of which one is a window: `col("w").start` and `.end` are its bounds."""

    def __init__(self, table: Table, window: GroupWindow, keys: tuple[Node, ...]) -> None:
        self._table = table
        self._window = window
        self._keys = keys

    def select(self, *fields: Expression | str) -> Table:
        items = tuple(
            ast.SelectItem(resolve_window_columns(item.expression, self._window), item.alias)
            for item in self._table._items(fields)
        )
        return self._table._of(ast.Select(items, self._table._given(), group_by=self._keys))

    def aggregate(self, func: Expression | UserDefinedFunctionWrapper) -> WindowAggregatedTable:
        """What an aggregate gives for each group, for `select` among its fields, the groups and the window's bounds."""
        return WindowAggregatedTable(self._table, self._window, self._keys, func)


class WindowAggregatedTable:
    """A table with groups of which one is a window, and a user's aggregate."""

    def __init__(
        self,
        table: Table,
        window: GroupWindow,
        keys: tuple[Node, ...],
        func: Expression | UserDefinedFunctionWrapper,
    ) -> None:
        self._table = table
        self._window = window
        groups = tuple(key for key in keys if key != window_call(window))
        bounds = {part: f"{window.name}${part.lower()}" for part in ("START", "END", "ROWTIME")}
        items = tuple(ast.SelectItem(window_call(window, part), name) for part, name in bounds.items())
        query = aggregated(table._given(), func, groups, table.get_schema(), False, items, (window_call(window),))
        self._result = table._of(query)
        self._bounds = {window_call(window, part): ex.Name((name,)) for part, name in bounds.items()}

    def select(self, *fields: Expression | str) -> Table:
        items: list[ast.SelectItem] = []
        for item in self._result._items(fields):
            node = resolve_window_columns(item.expression, self._window)
            if node in self._bounds:
                items.append(ast.SelectItem(self._bounds[node], item.alias or f"EXPR${len(items)}"))
            else:
                items.append(ast.SelectItem(node, item.alias))
        return self._table._of(ast.Select(tuple(items), self._result._given()))


class OverWindowedTable:
    """A table with windows around each row; `select` gives one row for each row."""

    def __init__(self, table: Table, windows: tuple[OverWindow, ...]) -> None:
        if not windows:
            raise SqlError("over_window() takes windows: Over.partition_by(…).order_by(…).alias('w')")
        names = [window.name for window in windows]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise SqlError(f"over_window(): two windows are called '{twice}'")
        self._table = table
        self._windows = tuple(ast.NamedWindow(window.name, window.spec) for window in windows)

    def select(self, *fields: Expression | str) -> Table:
        return self._table._of(ast.Select(self._table._items(fields), self._table._given(), windows=self._windows))


def _node(field: Expression | str) -> Node:
    return ex.Name((field,)) if isinstance(field, str) else node_of(field)


def _column(name: str) -> ast.SelectItem:
    return ast.SelectItem(ex.Name((name,)))


def _name_of(node: Node) -> str:
    if not isinstance(node, ex.Name):
        raise SqlError("a column is named here: col('a'), with alias('b') for its new name")
    return node.parts[-1]
