"""ALTER TABLE of columns, watermark and primary key: ADD, MODIFY, DROP, RENAME."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from headwater.common.errors import SqlError
from headwater.table.catalog.objects import CatalogTable, Identifier, ResolvedSchema, TableColumn, WatermarkSpec
from headwater.table.parser.ast import expressions as ex
from headwater.table.parser.ast import statements as ast
from headwater.table.parser.parse import parse_statement
from headwater.table.plan.context import BindContext
from headwater.table.plan.table_binder import bind_columns, unbound_column
from headwater.table.statements.show import definition

FIRST = "FIRST"


def altered(table: CatalogTable, identifier: Identifier, action: ast.AlterAction, context: BindContext) -> CatalogTable:
    """The table with another schema. Raises SqlError if the change contradicts itself, or what stays."""
    if table.rows is not None:
        raise SqlError(f"'{identifier}' is made of values of the program: its columns cannot be changed")
    match action:
        case ast.ChangeSchema(distribution=None):
            change = _Change(table.schema, action.kind == "ADD", context)
            changed = replace(table, schema=change.of(action))
        case ast.RenameColumn():
            changed = _renamed(table, action)
        case ast.DropSchema():
            changed = replace(table, schema=_without(table, action))
        case _:
            raise SqlError("ALTER TABLE … PARTITION and DISTRIBUTION are not there: partitions are what is written")
    return _bound(changed, identifier, context)


def _bound(table: CatalogTable, identifier: Identifier, context: BindContext) -> CatalogTable:
    """The table as if it had been created so: all that refers to columns is looked up again, in a text of its own."""
    sql = definition(identifier, table, False)
    statement = parse_statement(sql)
    assert isinstance(statement, ast.CreateTable)
    within = replace(context, sql=sql)
    schema = bind_columns(statement.columns, statement.watermark, statement.keys, within)
    return replace(table, schema=schema, sql=sql)


class _Change:
    """ADD or MODIFY of one statement."""

    def __init__(self, schema: ResolvedSchema, adds: bool, context: BindContext) -> None:
        self._schema = schema
        self._adds = adds
        self._context = context

    def of(self, action: ast.ChangeSchema) -> ResolvedSchema:
        columns = list(self._schema.columns)
        keys = list(action.keys)
        for column, place in action.columns:
            self._put(columns, column, place)
            if column.primary_key:
                keys.append(ast.Key("PRIMARY KEY", (column.name,)))
        found = replace(self._schema, columns=tuple(columns))
        if action.watermark is not None:
            self._check("a watermark", self._schema.watermark is not None)
            mark = action.watermark
            found = replace(found, watermark=WatermarkSpec(mark.column, mark.expression))
        if len(keys) > 1:
            raise SqlError("a table has one primary key; these are two")
        if keys:
            self._check("a primary key", bool(self._schema.primary_key))
            key = keys[0]
            if key.kind != "PRIMARY KEY" or key.enforced:
                raise SqlError("a table has a PRIMARY KEY (…) NOT ENFORCED, and no other constraint")
            found = replace(found, primary_key=key.columns, primary_key_name=key.name or f"PK_{'_'.join(key.columns)}")
        return found

    def _check(self, what: str, there: bool) -> None:
        if self._adds and there:
            raise SqlError(f"the table has {what}; MODIFY it, or DROP it first")
        if not self._adds and not there:
            raise SqlError(f"the table has no {what.removeprefix('a ')} to MODIFY; ADD one")

    def _put(self, columns: list[TableColumn], column: ast.Column, place: str | None) -> None:
        at = _place(columns, column.name)
        made = unbound_column(column, self._context)
        if self._adds:
            if at is not None:
                raise SqlError(f"there is a column '{column.name}'; MODIFY it")
            at = len(columns)
            columns.append(made)
        elif at is None:
            raise _no_column(column.name, columns)
        else:
            columns[at] = made
        if place is None:
            return
        columns.pop(at)
        if place == FIRST:
            columns.insert(0, made)
            return
        name = place.removeprefix("AFTER ")
        before = _place(columns, name)
        if before is None:
            raise _no_column(name, columns)
        columns.insert(before + 1, made)


def _renamed(table: CatalogTable, action: ast.RenameColumn) -> CatalogTable:
    schema, (name, *deeper) = table.schema, action.column
    if deeper:
        raise SqlError(f"'{'.'.join(action.column)}' is a field; MODIFY its column")
    if schema.column(name) is None:
        raise _no_column(name, schema.columns)
    if schema.column(action.name) is not None:
        raise SqlError(f"there is a column '{action.name}'")
    if name in table.partition_keys:
        raise SqlError(f"the table is PARTITIONED BY '{name}', which is the name of directories")
    _refuse_used(schema, (name,))
    return replace(
        table,
        schema=replace(
            schema,
            columns=tuple(replace(c, name=action.name) if c.name == name else c for c in schema.columns),
            primary_key=tuple(action.name if each == name else each for each in schema.primary_key),
        ),
    )


def _without(table: CatalogTable, action: ast.DropSchema) -> ResolvedSchema:
    schema = table.schema
    match action.part:
        case "WATERMARK":
            if schema.watermark is None:
                raise SqlError("the table has no watermark to DROP")
            return replace(schema, watermark=None)
        case "PRIMARY KEY" | "CONSTRAINT":
            if not schema.primary_key or (action.names and action.names[0] != schema.primary_key_name):
                raise SqlError(
                    f"the table has no {action.part.lower()} {''.join(action.names)} to DROP".replace("  ", " ")
                )
            return replace(schema, primary_key=(), primary_key_name=None)
        case "COLUMNS":
            for name in action.names:
                if schema.column(name) is None:
                    raise _no_column(name, schema.columns)
                if name in schema.primary_key:
                    raise SqlError(f"'{name}' is in the primary key; DROP PRIMARY KEY first")
                if name in table.partition_keys:
                    raise SqlError(f"the table is PARTITIONED BY '{name}'")
            kept = tuple(column for column in schema.columns if column.name not in action.names)
            _refuse_used(replace(schema, columns=kept), action.names)
            if not kept:
                raise SqlError("a table needs a column; these are all that it has")
            return replace(schema, columns=kept)
    raise SqlError("a table here has no DISTRIBUTION")


def _refuse_used(schema: ResolvedSchema, names: tuple[str, ...]) -> None:
    """Refuse columns that a computed column or the watermark needs."""
    for column in schema.columns:
        if column.expression is not None and (used := {*names} & {*_names(column.expression)}):
            raise SqlError(f"column '{column.name}' is computed from '{min(used)}'; change it first")
    mark = schema.watermark
    if mark is not None and (used := {*names} & {mark.column[0], *_names(mark.expression)}):
        raise SqlError(f"the watermark needs '{min(used)}'; DROP WATERMARK first")


def _names(node: Any) -> Iterator[str]:
    """The names that begin references in an expression."""
    if isinstance(node, ex.Name):
        yield node.parts[0]
    elif isinstance(node, tuple):
        for each in node:
            yield from _names(each)
    elif is_dataclass(node):
        for each in fields(node):
            yield from _names(getattr(node, each.name))


def _place(columns: list[TableColumn], name: str) -> int | None:
    return next((at for at, column in enumerate(columns) if column.name == name), None)


def _no_column(name: str, columns: Any) -> SqlError:
    return SqlError(f"there is no column '{name}' (there is {', '.join(column.name for column in columns)})")
