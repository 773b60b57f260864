"""All catalogs of an environment, the current one, and what is temporary. Names are resolved here."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from headwater.common.errors import SqlError
from headwater.table.catalog.catalog import Catalog
from headwater.table.catalog.functions import FunctionCatalog
from headwater.table.catalog.objects import CatalogTable, CatalogView, Identifier

DEFAULT_CATALOG = "default_catalog"
DEFAULT_DATABASE = "default_database"


class CatalogManager:
    """Finds objects by names of one, two or three parts. A temporary object hides the permanent one of its name."""

    def __init__(self, catalog: str = DEFAULT_CATALOG, database: str = DEFAULT_DATABASE) -> None:
        self._catalogs: dict[str, Catalog] = {catalog: Catalog(catalog, database)}
        self.current_catalog = catalog
        self.current_database = database
        self._temporary: dict[Identifier, CatalogTable | CatalogView] = {}
        self.functions = FunctionCatalog()

    # -- Catalogs and databases

    def list_catalogs(self) -> list[str]:
        return sorted(self._catalogs)

    def catalog(self, name: str) -> Catalog:
        try:
            return self._catalogs[name]
        except KeyError:
            raise SqlError(f"there is no catalog '{name}'; there are {', '.join(self.list_catalogs())}") from None

    def register_catalog(self, name: str, catalog: Catalog, if_not_exists: bool = False) -> None:
        if name in self._catalogs:
            if if_not_exists:
                return
            raise SqlError(f"catalog '{name}' exists; write IF NOT EXISTS to keep it")
        self._catalogs[name] = catalog

    def drop_catalog(self, name: str, if_exists: bool = False) -> None:
        if name == self.current_catalog:
            raise SqlError(f"catalog '{name}' is in use; USE another CATALOG first")
        if name not in self._catalogs and if_exists:
            return
        self.catalog(name)
        del self._catalogs[name]

    def use_catalog(self, name: str) -> None:
        self.current_database = self.catalog(name).default_database
        self.current_catalog = name

    def use_database(self, parts: Sequence[str]) -> None:
        catalog, database = self.resolve_database(parts)
        self.catalog(catalog).get_database(database)
        self.current_catalog, self.current_database = catalog, database

    def resolve_database(self, parts: Sequence[str]) -> tuple[str, str]:
        """The catalog and database that a name of one or two parts means; of none: the current ones."""
        if not parts:
            return self.current_catalog, self.current_database
        if len(parts) > 2:
            raise SqlError(f"'{'.'.join(parts)}' is no database: its name has at most two parts, catalog.database")
        return (self.current_catalog, parts[0]) if len(parts) == 1 else (parts[0], parts[1])

    # -- Tables and views

    def qualify(self, parts: Sequence[str], catalog: str | None = None, database: str | None = None) -> Identifier:
        """The full name of an object. Missing parts are the current ones, or those given."""
        if not 1 <= len(parts) <= 3:
            raise SqlError(f"'{'.'.join(parts)}' is no name: it has at most three parts, catalog.database.name")
        defaults = (catalog or self.current_catalog, database or self.current_database)
        return Identifier(*defaults[: 3 - len(parts)], *parts)

    def find(self, identifier: Identifier) -> CatalogTable | CatalogView | None:
        found = self._temporary.get(identifier)
        if found is None and identifier.catalog in self._catalogs:
            found = self._catalogs[identifier.catalog].find(identifier.path)
        return found

    def is_temporary(self, identifier: Identifier) -> bool:
        return identifier in self._temporary

    def unknown(self, parts: Sequence[str], identifier: Identifier) -> str:
        """The text of the error that there is no such table, with the nearest name."""
        name = ".".join(parts)
        if identifier.catalog not in self._catalogs:
            return f"table '{name}': there is no catalog '{identifier.catalog}'"
        catalog = self._catalogs[identifier.catalog]
        if not catalog.database_exists(identifier.database):
            return f"table '{name}': catalog '{identifier.catalog}' has no database '{identifier.database}'"
        return f"there is no table '{name}'{self._nearest(identifier)}"

    def _nearest(self, identifier: Identifier) -> str:
        """The nearest name of a table, and all that there are."""
        known = self.list_tables(identifier.catalog, identifier.database)
        near = difflib.get_close_matches(identifier.name, known, n=1, cutoff=0.6)
        cure = f"; did you mean '{near[0]}'?" if near else ""
        shown = ", ".join(known[:20]) or "nothing"
        return f"{cure} ({identifier.catalog}.{identifier.database} has {shown})"

    def create(
        self,
        identifier: Identifier,
        table: CatalogTable | CatalogView,
        temporary: bool = False,
        if_not_exists: bool = False,
        replace: bool = False,
    ) -> bool:
        """Add a table or view. Returns False if it exists and that was allowed."""
        tables = self.catalog(identifier.catalog).get_database(identifier.database).tables
        exists = identifier in self._temporary if temporary else identifier.name in tables
        if exists and not replace:
            if if_not_exists:
                return False
            kind = "temporary table" if temporary else "table"
            raise SqlError(f"{kind} or view '{identifier}' exists; drop it first, or write IF NOT EXISTS to keep it")
        if temporary:
            self._temporary[identifier] = table
        else:
            tables[identifier.name] = table
        return True

    def replace(self, identifier: Identifier, table: CatalogTable | CatalogView) -> None:
        """Put a changed table or view in the place of the one that is there."""
        if identifier in self._temporary:
            self._temporary[identifier] = table
        else:
            self.catalog(identifier.catalog).get_database(identifier.database).tables[identifier.name] = table

    def drop(self, identifier: Identifier, view: bool, temporary: bool = False, if_exists: bool = False) -> bool:
        """Remove a table or a view. Returns False if there is none and that was allowed."""
        kind = "view" if view else "table"
        found = self._temporary.get(identifier)
        if not temporary:
            if found is not None:
                raise SqlError(
                    f"temporary {kind} '{identifier}' hides the one to drop; DROP TEMPORARY {kind.upper()} first"
                )
            found = self.find(identifier)
        if found is None or isinstance(found, CatalogView) is not view:
            if if_exists:
                return False
            other = self._nearest(identifier) if found is None else f"; it is a {'table' if view else 'view'}"
            raise SqlError(f"there is no {'temporary ' if temporary else ''}{kind} '{identifier}'{other}")
        if temporary:
            del self._temporary[identifier]
        else:
            del self.catalog(identifier.catalog).get_database(identifier.database).tables[identifier.name]
        return True

    def rename(self, identifier: Identifier, name: str) -> None:
        if identifier in self._temporary:
            raise SqlError(f"'{identifier}' is temporary: drop it and create it with the new name")
        tables = self.catalog(identifier.catalog).get_database(identifier.database).tables
        if name in tables:
            raise SqlError(f"'{identifier.catalog}.{identifier.database}.{name}' exists")
        tables[name] = tables.pop(identifier.name)

    def list_tables(self, catalog: str, database: str) -> list[str]:
        """Names of tables and views, temporary ones too."""
        temporary = {each.name for each in self._temporary if (each.catalog, each.database) == (catalog, database)}
        return sorted({*self.catalog(catalog).list_tables(database), *temporary})

    def list_views(self, catalog: str, database: str) -> list[str]:
        def is_view(name: str) -> bool:
            return isinstance(self.find(Identifier(catalog, database, name)), CatalogView)

        return [name for name in self.list_tables(catalog, database) if is_view(name)]

    def list_temporary(self, views_only: bool = False) -> list[str]:
        """Names of temporary tables and views in the current database."""
        here = (self.current_catalog, self.current_database)
        return sorted(
            each.name
            for each, table in self._temporary.items()
            if (each.catalog, each.database) == here and (isinstance(table, CatalogView) or not views_only)
        )
