"""CREATE, ALTER and DROP: changes of the catalogs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from headwater.common.errors import SqlError
from headwater.table.catalog.catalog import TYPE, Catalog
from headwater.table.catalog.manager import CatalogManager
from headwater.table.catalog.objects import CatalogDatabase, CatalogTable, CatalogView, Identifier, ResolvedSchema
from headwater.table.parser.ast import statements as ast
from headwater.table.parser.ast.base import Statement
from headwater.table.plan.context import BindContext
from headwater.table.plan.query_binder import bind_query
from headwater.table.plan.table_binder import bind_columns, like, schema_of
from headwater.table.statements.alter_table import altered
from headwater.table.user_functions import alter_function, create_function, drop_function


class CatalogChanges:
    """Executes statements that change catalogs. Raises SqlError with the place in `sql`, and changes nothing then."""

    def __init__(self, catalogs: CatalogManager, sql: str) -> None:
        self._catalogs = catalogs
        self._sql = sql

    def _context(self) -> BindContext:
        return BindContext(self._sql, self._catalogs)

    def _error(self, text: str, node: Statement) -> SqlError:
        return self._context().error(text, node.span)

    def apply(self, statement: Statement) -> None:
        match statement:
            case ast.CreateTable():
                self.create_table(statement)
            case ast.CreateView():
                self._create_view(statement)
            case ast.CreateDatabase():
                catalog, database = self._catalogs.resolve_database(statement.name)
                made = CatalogDatabase(statement.comment, dict(statement.options))
                self._catalogs.catalog(catalog).create_database(database, made, statement.if_not_exists)
            case ast.CreateCatalog():
                self._create_catalog(statement)
            case ast.CreateFunction():
                self._about_function(create_function, statement)
            case ast.Alter():
                self._alter(statement)
            case ast.Drop():
                self._drop(statement)
            case _:
                raise self._error(f"{type(statement).__name__} is not there yet", statement)

    # -- CREATE

    def create_table(self, statement: ast.CreateTable, schema: ResolvedSchema | None = None) -> Identifier | None:
        """Add the table. `schema`: of CREATE TABLE AS, that of its query. Returns None if it exists already."""
        if statement.distribution is not None:
            raise self._error("DISTRIBUTED is not there: no connector here keeps buckets", statement)
        context = self._context()
        base = CatalogTable(schema or ResolvedSchema(()))
        if statement.like is not None:
            source = self._catalogs.qualify(statement.like.table)
            found = self._catalogs.find(source)
            if found is None:
                raise context.error(self._catalogs.unknown(statement.like.table, source), statement.like.span)
            base = like(found, statement.like.options)
        resolved = bind_columns(statement.columns, statement.watermark, statement.keys, context, base.schema)
        keys = statement.partitioned_by or base.partition_keys
        for name in keys:
            if resolved.column(name) is None:
                raise self._error(f"PARTITIONED BY names '{name}', which is no column", statement)
        table = CatalogTable(
            resolved,
            {**base.options, **dict(statement.options)},
            keys,
            statement.comment or base.comment,
            self._sql,
        )
        identifier = self._catalogs.qualify(statement.name)
        created = self._catalogs.create(
            identifier, table, statement.temporary, statement.if_not_exists, statement.or_replace
        )
        return identifier if created else None

    def _create_view(self, statement: ast.CreateView) -> None:
        plan = bind_query(statement.query, self._context())
        schema = schema_of(plan)
        if statement.columns:
            if len(statement.columns) != len(schema.columns):
                raise self._error(
                    f"the view names {len(statement.columns)} columns, its query has {len(schema.columns)}", statement
                )
            pairs = zip(schema.columns, statement.columns, strict=True)
            schema = ResolvedSchema(tuple(replace(c, name=name, comment=comment) for c, (name, comment) in pairs))
        here = (self._catalogs.current_catalog, self._catalogs.current_database)
        view = CatalogView(schema, statement.query, self._sql, *here, comment=statement.comment)
        identifier = self._catalogs.qualify(statement.name)
        self._catalogs.create(identifier, view, statement.temporary, statement.if_not_exists)

    def _create_catalog(self, statement: ast.CreateCatalog) -> None:
        options = dict(statement.options)
        kind = options.pop("type", None)
        if kind != TYPE:
            found = f"'{kind}'" if kind else "none"
            raise self._error(f"the type of a catalog is '{TYPE}', found {found}", statement)
        default = options.pop("default-database", "default")
        if options:
            raise self._error(f"a catalog in memory has no option '{next(iter(options))}'", statement)
        catalog = Catalog(statement.name, default, statement.comment)
        self._catalogs.register_catalog(statement.name, catalog, statement.if_not_exists)

    # -- ALTER

    def _alter(self, statement: ast.Alter) -> None:
        if statement.kind in ("DATABASE", "CATALOG"):
            self._alter_container(statement)
            return
        if statement.kind == "FUNCTION":
            self._about_function(alter_function, statement)
            return
        identifier = self._catalogs.qualify(statement.name)
        table = self._catalogs.find(identifier)
        if table is None or isinstance(table, CatalogView) is not (statement.kind == "VIEW"):
            if table is None and statement.if_exists:
                return
            raise self._error(self._catalogs.unknown(statement.name, identifier), statement)
        if isinstance(statement.action, ast.RenameTo):
            self._catalogs.rename(identifier, statement.action.name[-1])
        elif isinstance(table, CatalogView):
            assert isinstance(statement.action, ast.ChangeQuery)
            schema = schema_of(bind_query(statement.action.query, self._context()))
            changed = replace(table, schema=schema, query=statement.action.query, sql=self._sql)
            self._catalogs.replace(identifier, changed)
        else:
            self._catalogs.replace(identifier, self._altered(table, identifier, statement))

    def _altered(self, table: CatalogTable, identifier: Identifier, statement: ast.Alter) -> CatalogTable:
        match statement.action:
            case ast.SetOptions(options=options):
                return replace(table, options={**table.options, **dict(options)})
            case ast.ResetOptions(keys=keys):
                if "connector" in keys:
                    raise self._error("the connector of a table cannot be reset", statement)
                return replace(table, options={k: v for k, v in table.options.items() if k not in keys})
        try:
            return altered(table, identifier, statement.action, self._context())
        except SqlError as error:
            raise self._error(str(error), statement) from None

    def _alter_container(self, statement: ast.Alter) -> None:
        options: dict[str, str]
        if statement.kind == "DATABASE":
            catalog, name = self._catalogs.resolve_database(statement.name)
            options = self._catalogs.catalog(catalog).get_database(name).options
        else:
            target = self._catalogs.catalog(statement.name[0])
            if isinstance(statement.action, ast.ChangeComment):
                target.comment = statement.action.comment
                return
            options = target.options
        if isinstance(statement.action, ast.SetOptions):
            options.update(statement.action.options)
        elif isinstance(statement.action, ast.ResetOptions):
            for key in statement.action.keys:
                options.pop(key, None)

    # -- DROP

    def _drop(self, statement: ast.Drop) -> None:
        match statement.kind:
            case "CATALOG":
                self._catalogs.drop_catalog(statement.name[0], statement.if_exists)
            case "DATABASE":
                catalog, database = self._catalogs.resolve_database(statement.name)
                if (catalog, database) == (self._catalogs.current_catalog, self._catalogs.current_database):
                    raise self._error(f"database '{database}' is in use; USE another one first", statement)
                self._catalogs.catalog(catalog).drop_database(database, statement.if_exists, bool(statement.cascade))
            case "TABLE" | "VIEW":
                identifier = self._catalogs.qualify(statement.name)
                self._catalogs.drop(identifier, statement.kind == "VIEW", statement.temporary, statement.if_exists)
            case _:
                self._about_function(drop_function, statement)

    def _about_function(self, change: Callable[[Any, CatalogManager], None], statement: Statement) -> None:
        try:
            change(statement, self._catalogs)
        except SqlError as error:
            raise self._error(str(error), statement) from None
