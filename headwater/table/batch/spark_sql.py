"""A typed plan as one Spark SQL query. Every column is called by its id; every type is said."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from headwater.common.errors import SqlError
from headwater.table.batch.literals import quoted, spark_literal
from headwater.table.batch.spark_expressions import SparkExpressions, column_name
from headwater.table.batch.spark_windows import window_table
from headwater.table.functions.definition import Binding
from headwater.table.plan.expressions import AggregateCall, Grouping, InSubquery, Literal
from headwater.table.plan.match import Match
from headwater.table.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Over,
    Plan,
    Project,
    Scan,
    SetOperation,
    Snapshot,
    Sort,
    Unnest,
    Values,
    Watermark,
    WindowTable,
)
from headwater.table.types.logical import ArrayType, RowField, RowType, TimeAttribute
from headwater.table.types.spark import spark_type

_names = itertools.count(1)

_NOTHING = "1 AS c0"
"""What a query without columns selects."""


@dataclass(frozen=True)
class BatchQuery:
    """A query for Spark: its text, the tables that need a name first, the calls that need a function first."""

    sql: str
    row_type: RowType
    sources: dict[str, Scan] = field(default_factory=dict)
    kernels: tuple[Binding, ...] = ()
    """Calls of functions that Spark lacks."""
    matches: dict[str, tuple[str, Match]] = field(default_factory=dict)
    """Each MATCH_RECOGNIZE, by the name that the text has for it, inner ones first; with the query that spreads its
    PARTITION BY over tasks, and sorts the rows of each task."""


def batch_query(plan: Plan) -> BatchQuery:
    """The Spark SQL of a plan. Its columns have the names `c<id>`, in the order of the plan's columns."""
    writer = _Writer()
    text = writer.write(plan)
    names = ", ".join(column_name(column) for column in plan.columns)
    fields = tuple(RowField(column.name, column.type) for column in plan.columns)
    if not isinstance(plan, Sort):  # an outer SELECT would be free to forget the order
        text = f"SELECT {names} FROM ({text})"
    return BatchQuery(
        text,
        RowType(fields=fields, nullable=False),
        writer.sources,
        tuple(writer.expressions.kernels.values()),
        writer.matches,
    )


class _Writer:
    def __init__(self) -> None:
        self.expressions = SparkExpressions(self.write)
        self.sources: dict[str, Scan] = {}
        self.matches: dict[str, tuple[str, Match]] = {}

    def write(self, plan: Plan) -> str:
        match plan:
            case Scan():
                return self._scan(plan)
            case Values():
                return self._values(plan)
            case Project():
                return self._project(plan)
            case Filter():
                condition = self.expressions.text(plan.condition)
                return f"SELECT * FROM ({self.write(plan.input)}) WHERE {condition}"
            case Watermark():
                return self.write(plan.input)
            case Snapshot():
                if getattr(plan.period.type, "attribute", None) is not TimeAttribute.PROCTIME:
                    raise SqlError(
                        "FOR SYSTEM_TIME AS OF an event time runs in streaming mode only, on bounded tables too; in"
                        " batch mode a table is as it is now: FOR SYSTEM_TIME AS OF a column AS PROCTIME()"
                    )
                return self.write(plan.input)
            case Aggregate():
                return self._aggregate(plan)
            case Over():
                return self._over(plan)
            case WindowTable():
                return window_table(plan, self.write(plan.input))
            case Unnest():
                return self._unnest(plan)
            case Join():
                return self._join(plan)
            case SetOperation():
                return self._set_operation(plan)
            case Sort():
                return self._sort(plan)
            case Match():
                return self._match(plan)
        raise SqlError(f"{type(plan).__name__} does not run in batch mode")

    def _scan(self, scan: Scan) -> str:
        name = next((name for name, known in self.sources.items() if known.table is scan.table), None)
        if name is None:
            name = f"headwater_source_{next(_names)}"  # of this query only: others may run at the same time
            self.sources[name] = scan
        columns = ", ".join(f"{quoted(column.name)} AS {column_name(column)}" for column in scan.columns)
        return f"SELECT {columns or _NOTHING} FROM {name}"

    def _match(self, node: Match) -> str:
        if getattr(node.order_by[0].expression.type, "attribute", None) is TimeAttribute.PROCTIME:
            raise SqlError("MATCH_RECOGNIZE of a batch orders by a column of the rows: all are processed at one time")
        names = ", ".join(column_name(column) for column in node.input.columns)
        keys = ", ".join(column_name(column) for column in node.partition_by) or "1"
        rows = f"SELECT {names} FROM ({self.write(node.input)}) DISTRIBUTE BY {keys}"
        name = f"headwater_match_{next(_names)}"
        self.matches[name] = (f"{rows} SORT BY {self.expressions.sort(node.order_by)}", node)
        return f"SELECT * FROM {name}"

    def _values(self, values: Values) -> str:
        columns = values.columns
        if not values.rows:
            nulls = ", ".join(f"CAST(NULL AS {spark_type(c.type)}) AS {column_name(c)}" for c in columns)
            return f"SELECT {nulls or _NOTHING} WHERE FALSE"
        if not columns:
            return f"SELECT {_NOTHING}"
        names = [column_name(column) for column in columns]
        if all(isinstance(value, Literal) for row in values.rows for value in row):
            rows = ", ".join(f"({', '.join(spark_literal(v) for v in row)})" for row in values.rows)  # type: ignore[arg-type]
            return f"SELECT * FROM VALUES {rows} AS v({', '.join(names)})"
        selects = []
        for row in values.rows:
            items = (f"{self.expressions.text(value)} AS {name}" for value, name in zip(row, names, strict=True))
            selects.append(f"SELECT {', '.join(items)}")
        return " UNION ALL ".join(selects)

    def _project(self, project: Project) -> str:
        project = _without_in(project)
        items = (f"{self.expressions.text(rex)} AS {column_name(column)}" for column, rex in project.items)
        return f"SELECT {', '.join(items) or _NOTHING} FROM ({self.write(project.input)})"

    def _aggregate(self, node: Aggregate) -> str:
        inner = [f"{self.expressions.text(rex)} AS {column_name(column)}" for column, rex in node.groups]
        outer = [column_name(column) for column, _ in node.groups]
        for column, call in node.calls:
            name = column_name(column)
            if isinstance(call, Grouping):
                outer.append(f"{self._grouping(node, call)} AS {name}")
                continue
            arguments = []
            for place in range(len(call.arguments)):
                if isinstance(call.arguments[place], Literal):
                    arguments.append(self.expressions.argument(call, place))
                    continue
                arguments.append(f"{name}_{place}")
                inner.append(f"{self.expressions.argument(call, place)} AS {name}_{place}")
            condition = None
            if call.filter is not None:
                condition = f"{name}_f"
                inner.append(f"{self.expressions.text(call.filter)} AS {condition}")
            outer.append(f"{self.expressions.aggregate(call, arguments, condition)} AS {name}")
        source = f"SELECT {', '.join(inner) or _NOTHING} FROM ({self.write(node.input)})"
        groups = ", ".join(column_name(column) for column, _ in node.groups)
        if not outer:
            return f"SELECT COUNT(*) AS c0 FROM ({source})"
        by = ""
        if node.sets is not None:
            sets = (f"({', '.join(column_name(node.groups[place][0]) for place in each)})" for each in node.sets)
            by = f" GROUP BY GROUPING SETS ({', '.join(sets)})"
        elif groups:
            by = f" GROUP BY {groups}"
        return f"SELECT {', '.join(outer)} FROM ({source}){by}"

    def _grouping(self, node: Aggregate, call: Grouping) -> str:
        bits = []
        for place, argument in enumerate(call.arguments):
            column = next(column for column, rex in node.groups if rex == argument)
            bit = f"CAST(GROUPING({column_name(column)}) AS BIGINT)" if node.sets is not None else "0L"
            bits.append(f"{bit} * {2 ** (len(call.arguments) - 1 - place)}L")
        return f"({' + '.join(bits)})"

    def _over(self, node: Over) -> str:
        items = []
        for column, window in node.calls:
            call: AggregateCall = window.call
            arguments = [self.expressions.argument(call, place) for place in range(len(call.arguments))]
            condition = self.expressions.text(call.filter) if call.filter is not None else None
            if call.distinct:
                raise SqlError(f"{call.name}(DISTINCT …) OVER is not there: Spark has no such thing")
            text = self.expressions.aggregate(call, arguments, condition, self.expressions.window(window))
            items.append(f"{text} AS {column_name(column)}")
        return f"SELECT *, {', '.join(items)} FROM ({self.write(node.input)})"

    def _unnest(self, node: Unnest) -> str:
        collection = self.expressions.text(node.collection)
        if node.kind == "MULTISET":
            collection = f"FLATTEN(TRANSFORM(MAP_ENTRIES({collection}), e -> ARRAY_REPEAT(e.key, e.value)))"
        outer = "OUTER " if node.outer else ""
        elements = "u_key, u_value" if node.kind == "MAP" else "u_element"
        names = [column_name(column) for column in node.added]
        if node.kind == "MAP":
            values = ["u_key", "u_value"]
        elif node.kind == "ROWS":
            count = len(node.added) - (1 if node.ordinality else 0)
            fields = _row_fields(node)
            values = [f"u_element.{quoted(fields[place])}" for place in range(count)]
        else:
            values = ["u_element"]
        if node.ordinality:
            values.append("u_position + 1")
        columns = [column_name(column) for column in node.input.columns]
        columns += [f"{value} AS {name}" for value, name in zip(values, names, strict=True)]
        view = f"LATERAL VIEW {outer}POSEXPLODE({collection}) u AS u_position, {elements}"
        return f"SELECT {', '.join(columns)} FROM ({self.write(node.input)}) {view}"

    def _join(self, node: Join) -> str:
        left, right = self.write(node.left), self.write(node.right)
        condition = self.expressions.text(node.condition) if node.condition is not None else "TRUE"
        columns = ", ".join(column_name(column) for column in node.columns) or _NOTHING
        lateral = "LATERAL " if node.lateral else ""
        return f"SELECT {columns} FROM ({left}) {node.kind} JOIN {lateral}({right}) ON {condition}"

    def _set_operation(self, node: SetOperation) -> str:
        def side(plan: Plan) -> str:
            pairs = zip(plan.columns, node.columns, strict=True)
            items = ", ".join(f"{column_name(old)} AS {column_name(new)}" for old, new in pairs)
            return f"SELECT {items} FROM ({self.write(plan)})"

        everything = " ALL" if node.all else ""
        return f"({side(node.left)}) {node.operator}{everything} ({side(node.right)})"

    def _sort(self, node: Sort) -> str:
        names = ", ".join(column_name(column) for column in node.columns)
        text = f"SELECT {names} FROM ({self.write(node.input)})"
        if node.keys:
            text += f" ORDER BY {self.expressions.sort(node.keys)}"
        if node.limit is not None:
            text += f" LIMIT {node.limit}"
        if node.offset is not None:
            text += f" OFFSET {node.offset}"
        return text


def _without_in(project: Project) -> Project:
    """IN with a query among selected columns, as a join: Spark takes its NULL for FALSE."""
    from headwater.table.stream.rules.subquery_values import ValueJoins

    joins = ValueJoins(project.input, lambda plan: plan)
    items = tuple(
        (column, rex.transform(lambda node: joins.predicate(node) if isinstance(node, InSubquery) else None))
        for column, rex in project.items
    )
    return project if joins.plan is project.input else Project(joins.plan, items)


def _row_fields(node: Unnest) -> list[str]:
    array = node.collection.type
    assert isinstance(array, ArrayType) and isinstance(array.element, RowType)
    return [each.name for each in array.element.fields]
