"""The functions that users added to an environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.common.errors import SqlError
from headwater.table.catalog.objects import Identifier

if TYPE_CHECKING:
    from headwater.table.functions.definition import FunctionDefinition


class FunctionCatalog:
    """Functions by name. Names of functions do not differ by case.

    A plain name means, in this order: a temporary system function, a function of the system, a function of the current
    database, where a temporary one hides one of the catalog.
    """

    def __init__(self) -> None:
        self._system: dict[str, FunctionDefinition] = {}
        self._temporary: dict[Identifier, FunctionDefinition] = {}
        self._catalog: dict[Identifier, FunctionDefinition] = {}

    def of_system(self, name: str) -> FunctionDefinition | None:
        return self._system.get(name.lower())

    def of_catalog(self, identifier: Identifier) -> FunctionDefinition | None:
        key = _lower(identifier)
        return self._temporary.get(key) or self._catalog.get(key)

    def add_system(self, name: str, function: FunctionDefinition, ignore_if_exists: bool = False) -> None:
        self._add(self._system, name.lower(), name, function, ignore_if_exists)

    def add(
        self, identifier: Identifier, function: FunctionDefinition, temporary: bool, ignore_if_exists: bool = False
    ) -> None:
        where = self._temporary if temporary else self._catalog
        self._add(where, _lower(identifier), str(identifier), function, ignore_if_exists)

    def drop_system(self, name: str, if_exists: bool = False) -> bool:
        return self._drop(self._system, name.lower(), name, if_exists)

    def drop(self, identifier: Identifier, temporary: bool, if_exists: bool = False) -> bool:
        where = self._temporary if temporary else self._catalog
        return self._drop(where, _lower(identifier), str(identifier), if_exists)

    def names(self, catalog: str, database: str) -> list[str]:
        """The functions that plain names can mean."""
        found = set(self._system)
        for each in (*self._temporary, *self._catalog):
            if (each.catalog, each.database) == (catalog, database):
                found.add(each.name)
        return sorted(found)

    def _add(
        self, where: dict[Any, FunctionDefinition], key: Any, name: str, function: FunctionDefinition, ignore: bool
    ) -> None:
        if key not in where:
            where[key] = function
        elif not ignore:
            raise SqlError(f"function '{name}' exists; drop it first, or write IF NOT EXISTS to keep it")

    def _drop(self, where: dict[Any, FunctionDefinition], key: Any, name: str, if_exists: bool) -> bool:
        if where.pop(key, None) is not None:
            return True
        if not if_exists:
            known = ", ".join(sorted(str(each) for each in where)) or "none"
            raise SqlError(f"there is no such function '{name}' to drop (there is {known})")
        return False


def _lower(identifier: Identifier) -> Identifier:
    return Identifier(identifier.catalog, identifier.database, identifier.name.lower())
