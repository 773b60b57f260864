"""A catalog in memory: databases, and the tables and views in them."""

from __future__ import annotations

from headwater.common.errors import SqlError
from headwater.table.catalog.objects import CatalogBaseTable, CatalogDatabase, CatalogTable, CatalogView, ObjectPath

TYPE = "generic_in_memory"


class Catalog:
    """Databases by name. What it holds ends with the process."""

    def __init__(self, name: str, default_database: str = "default", comment: str | None = None) -> None:
        self.name = name
        self.default_database = default_database
        self.comment = comment
        self.options: dict[str, str] = {"type": TYPE}
        self._databases: dict[str, CatalogDatabase] = {default_database: CatalogDatabase()}

    def get_default_database(self) -> str:
        return self.default_database

    def list_databases(self) -> list[str]:
        return sorted(self._databases)

    def database_exists(self, database_name: str) -> bool:
        return database_name in self._databases

    def get_database(self, database_name: str) -> CatalogDatabase:
        try:
            return self._databases[database_name]
        except KeyError:
            known = ", ".join(self.list_databases())
            raise SqlError(f"catalog '{self.name}' has no database '{database_name}'; it has {known}") from None

    def create_database(self, name: str, database: CatalogDatabase, ignore_if_exists: bool = False) -> None:
        if name in self._databases:
            if ignore_if_exists:
                return
            raise SqlError(f"database '{self.name}.{name}' exists; write IF NOT EXISTS to keep it")
        self._databases[name] = database

    def drop_database(self, name: str, ignore_if_exists: bool = False, cascade: bool = False) -> None:
        """Remove a database. `ignore_if_exists` is PyFlink's name for: do nothing if there is none."""
        if name not in self._databases:
            if ignore_if_exists:
                return
            self.get_database(name)
        database = self._databases[name]
        if not cascade and database.tables:
            raise SqlError(f"database '{self.name}.{name}' is not empty; write CASCADE to drop what is in it")
        del self._databases[name]

    def alter_database(self, name: str, new_database: CatalogDatabase, ignore_if_not_exists: bool) -> None:
        """Give a database other properties and another comment; its tables stay."""
        if ignore_if_not_exists and name not in self._databases:
            return
        known = self.get_database(name)
        known.comment, known.options = new_database.comment, dict(new_database.options)

    # -- Tables and views

    def list_tables(self, database_name: str) -> list[str]:
        """Tables and views."""
        return sorted(self.get_database(database_name).tables)

    def list_views(self, database_name: str) -> list[str]:
        found = self.get_database(database_name).tables
        return sorted(name for name, table in found.items() if isinstance(table, CatalogView))

    def find(self, table_path: ObjectPath) -> CatalogTable | CatalogView | None:
        database = self._databases.get(table_path.database_name)
        return None if database is None else database.tables.get(table_path.object_name)

    def table_exists(self, table_path: ObjectPath) -> bool:
        return self.find(table_path) is not None

    def get_table(self, table_path: ObjectPath) -> CatalogTable | CatalogView:
        found = self.find(table_path)
        if found is None:
            known = ", ".join(self.list_tables(table_path.database_name)) or "nothing"
            raise SqlError(f"catalog '{self.name}' has no table '{table_path}'; the database has {known}")
        return found

    def create_table(self, table_path: ObjectPath, table: CatalogBaseTable, ignore_if_exists: bool) -> None:
        """Add a table, such as `CatalogBaseTable.create_table(…)` makes."""
        if not isinstance(table, CatalogTable | CatalogView):
            raise SqlError(f"create_table() takes a CatalogTable or a CatalogView, found {type(table).__name__}")
        tables = self.get_database(table_path.database_name).tables
        if table_path.object_name not in tables:
            tables[table_path.object_name] = table
        elif not ignore_if_exists:
            raise SqlError(f"table '{self.name}.{table_path}' exists; drop it first, or pass ignore_if_exists=True")

    def alter_table(self, table_path: ObjectPath, new_table: CatalogBaseTable, ignore_if_not_exists: bool) -> None:
        """Put another table in the place of one."""
        if ignore_if_not_exists and not self.table_exists(table_path):
            return
        if isinstance(self.get_table(table_path), CatalogView) is not isinstance(new_table, CatalogView):
            raise SqlError(f"'{self.name}.{table_path}': a table stays a table, and a view a view")
        del self.get_database(table_path.database_name).tables[table_path.object_name]
        self.create_table(table_path, new_table, False)

    def rename_table(self, table_path: ObjectPath, new_table_name: str, ignore_if_not_exists: bool) -> None:
        if ignore_if_not_exists and not self.table_exists(table_path):
            return
        found = self.get_table(table_path)
        self.create_table(ObjectPath(table_path.database_name, new_table_name), found, False)
        self.drop_table(table_path, False)

    def drop_table(self, table_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        """Remove a table or a view."""
        if ignore_if_not_exists and not self.table_exists(table_path):
            return
        self.get_table(table_path)
        del self.get_database(table_path.database_name).tables[table_path.object_name]
