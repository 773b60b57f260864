"""INSERT: the columns of a query go into those of a table, cast where that needs no CAST in SQL."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from headwater.common.errors import SqlError
from headwater.table.catalog.objects import CatalogTable, Identifier
from headwater.table.parser.ast.base import Expression
from headwater.table.parser.ast.statements import Insert
from headwater.table.plan.calls import implicit
from headwater.table.plan.context import BindContext, new_column
from headwater.table.plan.expression_binder import Allowed, ExpressionBinder
from headwater.table.plan.expressions import Column, Literal, Required, Rex, ref
from headwater.table.plan.nodes import Plan, Project, Sink
from headwater.table.plan.query_binder import bind_query
from headwater.table.plan.scope import Scope


def bind_insert(insert: Insert, identifier: Identifier, table: CatalogTable, context: BindContext) -> Sink:
    """The plan of an INSERT statement."""
    plan = bind_query(insert.query, context)
    static = _static(insert.partition, table, context)
    columns = _targets(insert, table, static, context)
    try:
        return sink(plan, identifier, table, insert.overwrite, columns, static)
    except SqlError as error:
        raise context.error(str(error), insert.query.span) from None


def _static(partition: Sequence[tuple[str, Expression]], table: CatalogTable, context: BindContext) -> dict[str, Rex]:
    binder = ExpressionBinder(context, Scope(), bind_query, Allowed("PARTITION"))
    found: dict[str, Rex] = {}
    for name, node in partition:
        if name not in table.partition_keys:
            keys = ", ".join(table.partition_keys) or "none"
            raise context.error(f"'{name}' is no partition column (there is {keys})", node.span)
        found[name] = binder.bind(node)
    return found


def _targets(insert: Insert, table: CatalogTable, static: dict[str, Rex], context: BindContext) -> list[str] | None:
    if not insert.columns:
        return None
    names = []
    known = [column.name for column in table.schema.sink_columns()]
    for parts in insert.columns:
        name = ".".join(parts)
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
            cure = f"; did you mean '{near[0]}'?" if near else ""
            raise context.error(
                f"table has no column '{name}' to insert into{cure} (there is {', '.join(known)})", insert.span
            )
        if name in names or name in static:
            raise context.error(f"column '{name}' is named twice", insert.span)
        names.append(name)
    return names


def sink(
    plan: Plan,
    identifier: Identifier,
    table: CatalogTable,
    overwrite: bool = False,
    columns: list[str] | None = None,
    static: dict[str, Rex] | None = None,
) -> Sink:
    """The plan's columns, by place, into the table's. Columns that are not named get NULL."""
    static = static or {}
    targets = table.schema.sink_columns()
    names = columns if columns is not None else [each.name for each in targets if each.name not in static]
    if len(names) != len(plan.columns):
        given = ", ".join(f"{column.name} {column.type.sql()}" for column in plan.columns)
        wanted = ", ".join(f"{each.name} {each.type.sql()}" for each in targets if each.name in names)
        raise SqlError(
            f"INSERT INTO {identifier}: the query has {len(plan.columns)} columns ({given}),"
            f" the table {len(names)} ({wanted})"
        )
    sources: dict[str, Rex] = {
        **{name: ref(column) for name, column in zip(names, plan.columns, strict=True)},
        **static,
    }
    items: list[tuple[Column, Rex]] = []
    for target in targets:
        rex = sources.get(target.name) or Literal(target.type.with_nullable(True), None)
        converted = implicit(rex, target.type)
        if converted is None:
            raise SqlError(
                f"INSERT INTO {identifier}: column '{target.name}' is {target.type.sql()}, the query gives"
                f" {rex.type.sql()}; CAST it"
            )
        if not target.type.nullable and isinstance(converted, Literal) and converted.value is None:
            raise SqlError(f"INSERT INTO {identifier}: column '{target.name}' is NOT NULL and gets NULL")
        if not target.type.nullable and converted.type.nullable:
            text = f"INSERT INTO {identifier}: column '{target.name}' is NOT NULL and got NULL"
            converted = Required(target.type, converted, text)
        items.append((new_column(target.name, target.type), converted))
    return Sink(Project(plan, tuple(items)), identifier, table, overwrite)
