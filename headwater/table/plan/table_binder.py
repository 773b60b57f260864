"""CREATE TABLE: the schema that was written, with all its types."""

from __future__ import annotations

from dataclasses import replace

from headwater.table.catalog.objects import CatalogTable, CatalogView, ResolvedSchema, TableColumn, WatermarkSpec
from headwater.table.parser.ast import expressions as ex
from headwater.table.parser.ast import statements as ast
from headwater.table.plan.context import BindContext, new_column
from headwater.table.plan.expression_binder import Allowed, ExpressionBinder
from headwater.table.plan.nodes import Plan
from headwater.table.plan.query_binder import bind_query
from headwater.table.plan.scope import Range, Scope
from headwater.table.plan.types import logical_type
from headwater.table.types.logical import LocalZonedTimestampType, LogicalType, TimestampType


def bind_columns(
    columns: tuple[ast.Column, ...],
    watermark: ast.Watermark | None,
    keys: tuple[ast.Key, ...],
    context: BindContext,
    base: ResolvedSchema | None = None,
) -> ResolvedSchema:
    """The schema of a table. `base`: columns that it has already (LIKE, CREATE TABLE AS)."""
    found: list[TableColumn] = list(base.columns) if base is not None else []
    for column in columns:
        if any(column.name == known.name for known in found):
            raise context.error(f"column '{column.name}' is defined twice", column.span)
        found.append(unbound_column(column, context))
    found = _computed(found, context)
    schema = ResolvedSchema(tuple(found))
    schema = _with_key(schema, columns, keys, context, base)
    if watermark is not None:
        schema = replace(schema, watermark=_watermark(watermark, schema, context))
    elif base is not None and base.watermark is not None:
        schema = replace(schema, watermark=base.watermark)
    return schema


_NOTHING = LogicalType()


def unbound_column(column: ast.Column, context: BindContext) -> TableColumn:
    """The column; a computed one has no type yet."""
    if column.expression is not None:
        return TableColumn(column.name, _NOTHING, column.expression, comment=column.comment)
    assert column.type is not None
    type_ = logical_type(column.type, context.sql)
    key = (column.metadata_key or column.name) if column.metadata else None
    return TableColumn(column.name, type_, None, key, column.virtual, column.comment)


def _computed(columns: list[TableColumn], context: BindContext) -> list[TableColumn]:
    """Bind computed columns over the others; one may not refer to another computed column."""
    given = tuple(new_column(column.name, column.type) for column in columns if column.expression is None)
    binder = ExpressionBinder(context, Scope([Range((), given)]), bind_query, Allowed("a computed column"))
    return [
        column if column.expression is None else replace(column, type=binder.bind(column.expression).type)
        for column in columns
    ]


def _with_key(
    schema: ResolvedSchema,
    columns: tuple[ast.Column, ...],
    keys: tuple[ast.Key, ...],
    context: BindContext,
    base: ResolvedSchema | None,
) -> ResolvedSchema:
    chosen = list(keys)
    chosen += [ast.Key("PRIMARY KEY", (column.name,), span=column.span) for column in columns if column.primary_key]
    if not chosen:
        if base is None:
            return schema
        return replace(schema, primary_key=base.primary_key, primary_key_name=base.primary_key_name)
    if len(chosen) > 1:
        raise context.error("a table has one primary key; this is a second one", chosen[1].span)
    key = chosen[0]
    if key.kind != "PRIMARY KEY":
        raise context.error("UNIQUE is not there; a table has a PRIMARY KEY", key.span)
    if key.enforced:
        raise context.error(
            "a primary key is not enforced: rows come from outside. Write PRIMARY KEY (…) NOT ENFORCED", key.span
        )
    for name in key.columns:
        column = schema.column(name)
        if column is None:
            raise context.error(f"the primary key names '{name}', which is no column", key.span)
        if not column.is_physical():
            raise context.error(f"the primary key names '{name}', which is no physical column", key.span)
    made = tuple(
        replace(column, type=column.type.not_null()) if column.name in key.columns else column
        for column in schema.columns
    )
    name = key.name or f"PK_{'_'.join(key.columns)}"
    return ResolvedSchema(made, schema.watermark, key.columns, name)


def _watermark(watermark: ast.Watermark, schema: ResolvedSchema, context: BindContext) -> WatermarkSpec:
    columns = tuple(new_column(column.name, column.type) for column in schema.columns)
    binder = ExpressionBinder(context, Scope([Range((), columns)]), bind_query, Allowed("WATERMARK"))
    time = binder.bind(ex.Name(watermark.column, span=watermark.span))
    value = binder.bind(watermark.expression)
    for rex, what in ((time, f"'{'.'.join(watermark.column)}'"), (value, "the watermark")):
        if not isinstance(rex.type, TimestampType | LocalZonedTimestampType) or rex.type.precision > 3:
            raise context.error(
                f"a watermark needs TIMESTAMP(3) or TIMESTAMP_LTZ(3): {what} is {rex.type.sql()}", watermark.span
            )
    return WatermarkSpec(watermark.column, watermark.expression)


def schema_of(plan: Plan) -> ResolvedSchema:
    """The schema of a query's result."""
    return ResolvedSchema(tuple(TableColumn(column.name, column.type) for column in plan.columns))


def like(table: CatalogTable | CatalogView, options: tuple[ast.LikeOption, ...]) -> CatalogTable:
    """What CREATE TABLE … LIKE takes over from a table, as its INCLUDING and EXCLUDING say."""
    chosen = dict.fromkeys(("CONSTRAINTS", "PARTITIONS", "METADATA", "GENERATED", "OPTIONS", "WATERMARKS"), True)
    for option in options:
        keep = option.strategy != "EXCLUDING"
        chosen.update(dict.fromkeys(chosen, keep) if option.part == "ALL" else {option.part: keep})
    schema = table.schema
    columns = tuple(
        column
        for column in schema.columns
        if column.is_physical()
        or (column.expression is not None and chosen["GENERATED"])
        or (column.metadata_key is not None and chosen["METADATA"])
    )
    kept = ResolvedSchema(
        columns,
        schema.watermark if chosen["WATERMARKS"] else None,
        schema.primary_key if chosen["CONSTRAINTS"] else (),
        schema.primary_key_name if chosen["CONSTRAINTS"] else None,
    )
    if isinstance(table, CatalogView):
        return CatalogTable(kept)
    return CatalogTable(
        kept,
        dict(table.options) if chosen["OPTIONS"] else {},
        table.partition_keys if chosen["PARTITIONS"] else (),
        table.comment,
        table.sql,
    )
