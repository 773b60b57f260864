"""SHOW and DESCRIBE: questions about the catalogs."""

from __future__ import annotations

import re

from headwater.common.errors import SqlError
from headwater.common.secrets import shown
from headwater.table.catalog.catalog import TYPE, Catalog
from headwater.table.catalog.manager import CatalogManager
from headwater.table.catalog.objects import CatalogTable, CatalogView, Identifier, TableColumn
from headwater.table.functions.registry import all_functions, lookup
from headwater.table.parser.ast import statements as ast
from headwater.table.parser.printing.names import text
from headwater.table.parser.printing.queries import print_expression, print_query
from headwater.table.parser.tokens import located
from headwater.table.plan.window_functions import WINDOW_FUNCTIONS
from headwater.table.table_result import TableResult


def show(statement: ast.Show, catalogs: CatalogManager, sql: str) -> TableResult:
    match statement.what:
        case "CATALOGS":
            return _list("catalog name", catalogs.list_catalogs(), statement)
        case "DATABASES":
            catalog = statement.name[0] if statement.name else catalogs.current_catalog
            return _list("database name", catalogs.catalog(catalog).list_databases(), statement)
        case "TABLES":
            return _list("table name", catalogs.list_tables(*catalogs.resolve_database(statement.name)), statement)
        case "VIEWS":
            return _list("view name", catalogs.list_views(*catalogs.resolve_database(statement.name)), statement)
        case "FUNCTIONS":
            return _list("function name", known_functions(catalogs), statement)
        case "USER FUNCTIONS":
            return _list("function name", _of_users(catalogs), statement)
        case "CURRENT CATALOG":
            return TableResult.of_text(["current catalog name"], [[catalogs.current_catalog]])
        case "CURRENT DATABASE":
            return TableResult.of_text(["current database name"], [[catalogs.current_database]])
        case "COLUMNS":
            rows = _described(_found(statement.name, catalogs, statement, sql))
            pattern = _pattern(statement)
            kept = [row for row in rows if pattern is None or bool(pattern.fullmatch(str(row[0]))) != statement.negated]
            return TableResult.of_text(_DESCRIBED, kept)
        case "CREATE TABLE" | "CREATE VIEW":
            found = _found(statement.name, catalogs, statement, sql)
            if isinstance(found, CatalogView) is not (statement.what == "CREATE VIEW"):
                kind = "view" if isinstance(found, CatalogView) else "table"
                raise located(f"'{'.'.join(statement.name)}' is a {kind}", sql, statement.span)
            identifier = catalogs.qualify(statement.name)
            return TableResult.of_text(["result"], [[definition(identifier, found, catalogs.is_temporary(identifier))]])
        case "CREATE CATALOG":
            return TableResult.of_text(["result"], [[_catalog_definition(catalogs.catalog(statement.name[0]))]])
    raise located(f"SHOW {statement.what} is not there yet", sql, statement.span)


def known_functions(catalogs: CatalogManager) -> list[str]:
    """The names of all functions: the system's and the users'."""
    names = {each.name for each in all_functions()} | set(WINDOW_FUNCTIONS) | set(_of_users(catalogs))
    return sorted({name.lower() for name in names if name.isidentifier()})


def _of_users(catalogs: CatalogManager) -> list[str]:
    return catalogs.functions.names(catalogs.current_catalog, catalogs.current_database)


def describe(statement: ast.Describe, catalogs: CatalogManager, sql: str) -> TableResult:
    match statement.kind:
        case "TABLE":
            return TableResult.of_text(_DESCRIBED, _described(_found(statement.name, catalogs, statement, sql)))
        case "CATALOG":
            catalog = catalogs.catalog(statement.name[0])
            told = {"name": catalog.name, "type": TYPE, "comment": catalog.comment or ""}
            options = {**catalog.options, "default-database": catalog.default_database}
        case "DATABASE":
            name, database = catalogs.resolve_database(statement.name)
            found = catalogs.catalog(name).get_database(database)
            told, options = {"name": database, "comment": found.comment or ""}, found.options
        case "FUNCTION":
            told, options = _function(statement, catalogs, sql), {}
        case _:
            raise located(f"DESCRIBE {statement.kind} is not there yet", sql, statement.span)
    if statement.extended:
        told |= {f"option:{key}": value for key, value in shown(options).items()}
    return TableResult.of_text(["info name", "info value"], [[key, value] for key, value in told.items()])


def _function(statement: ast.Describe, catalogs: CatalogManager, sql: str) -> dict[str, str]:
    name = statement.name[-1]
    of_user = catalogs.functions.of_system(name) or catalogs.functions.of_catalog(catalogs.qualify(statement.name))
    found = of_user or (lookup(name) if len(statement.name) == 1 else None)
    if found is None:
        raise located(f"there is no function '{'.'.join(statement.name)}'", sql, statement.span)
    return {
        "name": found.name,
        "is system function": "false" if of_user else "true",
        "kind": found.kind.name,
        "is deterministic": "true" if found.deterministic else "false",
        "signature": found.syntax,
        "description": found.description,
    }


def _found(
    name: tuple[str, ...], catalogs: CatalogManager, statement: ast.Show | ast.Describe, sql: str
) -> CatalogTable | CatalogView:
    identifier = catalogs.qualify(name)
    found = catalogs.find(identifier)
    if found is None:
        raise located(catalogs.unknown(name, identifier), sql, statement.span)
    return found


def _list(column: str, names: list[str], statement: ast.Show) -> TableResult:
    pattern = _pattern(statement)
    kept = [name for name in names if pattern is None or bool(pattern.fullmatch(name)) != statement.negated]
    return TableResult.of_text([column], [[name] for name in kept])


def _pattern(statement: ast.Show) -> re.Pattern[str] | None:
    if statement.like is None:
        return None
    parts = (".*" if each == "%" else "." if each == "_" else re.escape(each) for each in statement.like)
    return re.compile("".join(parts), re.IGNORECASE if statement.case_insensitive else 0)


_DESCRIBED = ("name", "type", "null", "key", "extras", "watermark")


def _described(table: CatalogTable | CatalogView) -> list[list[object]]:
    schema = table.schema
    rows: list[list[object]] = []
    for column in schema.columns:
        key = f"PRI({', '.join(schema.primary_key)})" if column.name in schema.primary_key else None
        mark = schema.watermark
        watermark = print_expression(mark.expression) if mark is not None and mark.column[0] == column.name else None
        rows.append([column.name, column.type.name(), column.type.nullable, key, _extras(column), watermark])
    return rows


def _extras(column: TableColumn) -> str | None:
    if column.expression is not None:
        return f"AS {print_expression(column.expression)}"
    if column.metadata_key is not None:
        return f"METADATA FROM {text(column.metadata_key)}" + (" VIRTUAL" if column.virtual else "")
    return None


def _catalog_definition(catalog: Catalog) -> str:
    comment = f"COMMENT {text(catalog.comment)}\n" if catalog.comment else ""
    options = {**catalog.options, "default-database": catalog.default_database}
    listed = ",\n".join(f"  {text(key)} = {text(value)}" for key, value in shown(options).items())
    return f"CREATE CATALOG `{catalog.name}`\n{comment}WITH (\n{listed}\n)\n"


def definition(identifier: Identifier, table: CatalogTable | CatalogView, temporary: bool) -> str:
    """The CREATE statement of a table or view."""
    word = "TEMPORARY " if temporary else ""
    if isinstance(table, CatalogView):
        if table.query is None:
            raise SqlError(f"view '{identifier}' was made of a Table: it has no SQL text")
        columns = ", ".join(f"`{name}`" for name in table.schema.names())
        return f"CREATE {word}VIEW {identifier.quoted()} ({columns})\nAS {print_query(table.query)}\n"
    lines = [f"  {_column(column)}" for column in table.schema.columns]
    schema = table.schema
    if schema.watermark is not None:
        column = ".".join(f"`{part}`" for part in schema.watermark.column)
        lines.append(f"  WATERMARK FOR {column} AS {print_expression(schema.watermark.expression)}")
    if schema.primary_key:
        keys = ", ".join(f"`{name}`" for name in schema.primary_key)
        lines.append(f"  CONSTRAINT `{schema.primary_key_name}` PRIMARY KEY ({keys}) NOT ENFORCED")
    body = ",\n".join(lines)
    comment = f"COMMENT {text(table.comment)}\n" if table.comment else ""
    keys = ", ".join(f"`{name}`" for name in table.partition_keys)
    partitioned = f"PARTITIONED BY ({keys})\n" if keys else ""
    options = ",\n".join(f"  {text(key)} = {text(value)}" for key, value in shown(table.options).items())
    return f"CREATE {word}TABLE {identifier.quoted()} (\n{body}\n)\n{comment}{partitioned}WITH (\n{options}\n)\n"


def _column(column: TableColumn) -> str:
    extras = _extras(column)
    kind = column.type.sql() if column.expression is None else ""
    comment = f"COMMENT {text(column.comment)}" if column.comment else ""
    return " ".join(part for part in (f"`{column.name}`", kind, extras or "", comment) if part)
