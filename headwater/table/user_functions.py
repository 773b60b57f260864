"""The functions of an environment: adding them from Python and by CREATE FUNCTION, and dropping them."""

from __future__ import annotations

import importlib
from typing import Any

from headwater.common.errors import SqlError
from headwater.table.catalog.manager import CatalogManager
from headwater.table.functions.definition import FunctionDefinition
from headwater.table.parser.ast import statements as ast
from headwater.table.statements.show import known_functions
from headwater.table.udf import (
    AggregateFunction,
    TableAggregateFunction,
    TableFunction,
    UserDefinedFunction,
    UserDefinedFunctionWrapper,
    udaf,
    udf,
    udtaf,
    udtf,
)


class FunctionMethods:
    """What a TableEnvironment does about functions."""

    _catalogs: CatalogManager

    def create_temporary_system_function(
        self, name: str, function: UserDefinedFunctionWrapper | UserDefinedFunction
    ) -> None:
        """Add a function to this environment, under a plain name that is found first."""
        self._catalogs.functions.add_system(name, definition_of(function, name))

    def create_temporary_function(self, path: str, function: UserDefinedFunctionWrapper | UserDefinedFunction) -> None:
        """Add a function to this environment, under a name `[catalog.[database.]]name`."""
        identifier = self._catalogs.qualify(path.split("."))
        self._catalogs.functions.add(identifier, definition_of(function, identifier.name), temporary=True)

    def drop_temporary_system_function(self, name: str) -> bool:
        return self._catalogs.functions.drop_system(name, if_exists=True)

    def drop_temporary_function(self, path: str) -> bool:
        return self._catalogs.functions.drop(self._catalogs.qualify(path.split(".")), True, if_exists=True)

    def drop_function(self, path: str) -> bool:
        """Remove a function of a catalog. False: there was none."""
        return self._catalogs.functions.drop(self._catalogs.qualify(path.split(".")), False, if_exists=True)

    def list_functions(self) -> list[str]:
        """The names of all functions that plain names can mean: the system's and the users'."""
        return known_functions(self._catalogs)

    def list_user_defined_functions(self) -> list[str]:
        """The names that users gave functions, as far as plain names can mean them."""
        return self._catalogs.functions.names(self._catalogs.current_catalog, self._catalogs.current_database)


def definition_of(function: Any, name: str) -> FunctionDefinition:
    """The function of SQL for what a program registers."""
    if isinstance(function, UserDefinedFunctionWrapper):
        return function.definition(name)
    if isinstance(function, UserDefinedFunction):
        makers = ((TableFunction, udtf), (AggregateFunction, udaf), (TableAggregateFunction, udtaf))
        make = next((make for kind, make in makers if isinstance(function, kind)), udf)
        made = make(function, name=name)
        assert isinstance(made, UserDefinedFunctionWrapper)
        return made.definition(name)
    raise SqlError(f"function '{name}': found {type(function).__name__}, expected what udf(), udtf() or udaf() makes")


def create_function(statement: ast.CreateFunction, catalogs: CatalogManager) -> None:
    """CREATE [TEMPORARY] [SYSTEM] FUNCTION name AS 'module.attribute' LANGUAGE PYTHON."""
    definition = definition_of(_imported(statement), statement.name[-1])
    if statement.system:
        catalogs.functions.add_system(statement.name[-1], definition, statement.if_not_exists)
    else:
        identifier = catalogs.qualify(statement.name)
        catalogs.functions.add(identifier, definition, statement.temporary, statement.if_not_exists)


def alter_function(statement: ast.Alter, catalogs: CatalogManager) -> None:
    """ALTER [TEMPORARY] [SYSTEM] FUNCTION name AS …: the function is another one from now on."""
    assert isinstance(statement.action, ast.ChangeFunction)
    made = ast.CreateFunction(
        statement.name,
        statement.action.identifier,
        statement.action.language,
        temporary=statement.temporary,
        system=statement.system,
    )
    definition_of(_imported(made), statement.name[-1])  # what cannot be had is an error before anything is dropped
    functions, name = catalogs.functions, statement.name
    if statement.system:
        dropped = functions.drop_system(name[-1], statement.if_exists)
    else:
        dropped = functions.drop(catalogs.qualify(name), statement.temporary, statement.if_exists)
    if dropped:
        create_function(made, catalogs)


def drop_function(statement: ast.Drop, catalogs: CatalogManager) -> None:
    if statement.system:
        catalogs.functions.drop_system(statement.name[-1], statement.if_exists)
    else:
        catalogs.functions.drop(catalogs.qualify(statement.name), statement.temporary, statement.if_exists)


def _imported(statement: ast.CreateFunction) -> Any:
    path, name = statement.identifier, ".".join(statement.name)
    if (statement.language or "").upper() != "PYTHON":
        raise SqlError(
            f"function '{name}' is in {statement.language or 'JAVA'}; functions here are of Python:"
            " AS 'module.attribute' LANGUAGE PYTHON"
        )
    if statement.resources:
        raise SqlError(f"function '{name}': USING JAR means nothing for Python; put the module on the path")
    module, _, attribute = path.rpartition(".")
    if not module:
        raise SqlError(f"function '{name}': '{path}' is no 'module.attribute'")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except ImportError as error:
        raise SqlError(f"function '{name}': module '{module}' cannot be imported: {error}") from None
    except AttributeError:
        raise SqlError(f"function '{name}': module '{module}' has no '{attribute}'") from None
    return found() if isinstance(found, type) and issubclass(found, UserDefinedFunction) else found
