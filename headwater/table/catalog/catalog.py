"""A catalog in memory: databases, and the tables and views in them."""

from __future__ import annotations

from headwater.common.errors import SqlError
from headwater.table.catalog.objects import CatalogTable, CatalogView, Database

TYPE = "generic_in_memory"


class Catalog:
    """Databases by name. What it holds ends with the process."""

    def __init__(self, name: str, default_database: str = "default", comment: str | None = None) -> None:
        self.name = name
        self.default_database = default_database
        self.comment = comment
        self.options: dict[str, str] = {"type": TYPE}
        self._databases: dict[str, Database] = {default_database: Database()}

    def get_default_database(self) -> str:
        return self.default_database

    def list_databases(self) -> list[str]:
        return sorted(self._databases)

    def database_exists(self, name: str) -> bool:
        return name in self._databases

    def get_database(self, name: str) -> Database:
        try:
            return self._databases[name]
        except KeyError:
            known = ", ".join(self.list_databases())
            raise SqlError(f"catalog '{self.name}' has no database '{name}'; it has {known}") from None

    def create_database(self, name: str, database: Database, ignore_if_exists: bool = False) -> None:
        if name in self._databases:
            if ignore_if_exists:
                return
            raise SqlError(f"database '{self.name}.{name}' exists; write IF NOT EXISTS to keep it")
        self._databases[name] = database

    def drop_database(self, name: str, ignore_if_not_exists: bool = False, cascade: bool = False) -> None:
        if name not in self._databases:
            if ignore_if_not_exists:
                return
            self.get_database(name)
        database = self._databases[name]
        if not cascade and database.tables:
            raise SqlError(f"database '{self.name}.{name}' is not empty; write CASCADE to drop what is in it")
        del self._databases[name]

    def list_tables(self, database: str) -> list[str]:
        """Tables and views."""
        return sorted(self.get_database(database).tables)

    def list_views(self, database: str) -> list[str]:
        found = self.get_database(database).tables
        return sorted(name for name, table in found.items() if isinstance(table, CatalogView))

    def get_table(self, database: str, name: str) -> CatalogTable | CatalogView | None:
        return self._databases[database].tables.get(name) if database in self._databases else None
