"""Lists the public API of PyFlink, one line per module, name and method: what `tests/parity/pyflink_api.txt` holds.

Runs in the environment where PyFlink is installed (`make parity` does that); needs nothing else, starts no JVM::

    python scripts/parity_api.py > tests/parity/pyflink_api.txt

    pyflink.common.types                                              a module
    pyflink.common.types.Row                                          a class, function or constant
    pyflink.common.types.Row.as_dict(recursive=False)                 a method
    pyflink.common.types.RowKind.INSERT                               an attribute, a property or a member of an enum
    pyflink.common.Row -> pyflink.common.types.Row                    the same thing under another name
"""

from __future__ import annotations

import enum
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

PACKAGES = ("pyflink.common", "pyflink.datastream", "pyflink.metrics", "pyflink.table", "pyflink.util")
MODULES = ("pyflink.java_gateway", "pyflink.version", "pyflink.serializers")
NAMES_ONLY = ("pyflink.util", "pyflink.java_gateway", "pyflink.serializers")
"""Parts that are missing here as a whole: their methods would say nothing more."""
SKIPPED = ("tests", "examples", "fn_execution", "testing")


def modules() -> Iterator[ModuleType]:
    names = list(MODULES)
    for package in PACKAGES:
        names.append(package)
        path = importlib.import_module(package).__path__
        names += [
            info.name
            for info in pkgutil.walk_packages(path, f"{package}.", onerror=lambda _: None)
            if not any(part in SKIPPED or part.startswith("_") for part in info.name.split("."))
        ]
    for name in sorted(set(names)):
        try:
            yield importlib.import_module(name)
        except Exception as error:  # an optional dependency that is not installed
            print(f"{name}: {error}", file=sys.stderr)


def public_names(module: ModuleType) -> list[str]:
    """What `__all__` says; a package passes on what it imports, a module offers what it defines.

    A package of PyFlink may pass on more than its `__all__` has: it sets attributes when it is imported.
    """
    listed = getattr(module, "__all__", None)
    is_package = hasattr(module, "__path__")
    found = []
    if listed is not None:
        found = [name for name in listed if hasattr(module, name) and not inspect.ismodule(getattr(module, name))]
        if not is_package:
            return found
    for name, value in vars(module).items():
        if name in found:
            continue
        if name.startswith("_") or inspect.ismodule(value) or not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        home = value.__module__ or ""
        if home == module.__name__ or (is_package and home.startswith("pyflink.")):
            found.append(name)
    return found


def lines_of(module: ModuleType) -> Iterator[str]:
    yield module.__name__
    for name in sorted(public_names(module)):
        value = getattr(module, name)
        here = f"{module.__name__}.{name}"
        named = inspect.isclass(value) or inspect.isfunction(value)  # any attribute of an Expression is a field of it
        home = f"{value.__module__}.{value.__qualname__}" if named else here
        if home != here and home.startswith("pyflink."):
            yield f"{here} -> {home}"
            continue
        yield here + (shown_parameters(value) if inspect.isfunction(value) else "")
        if inspect.isclass(value) and not here.startswith(NAMES_ONLY):
            yield from members(value, here)


def members(cls: type, path: str) -> Iterator[str]:
    if issubclass(cls, enum.Enum):
        yield from (f"{path}.{member}" for member in sorted(cls.__members__))
    seen: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if (base.__module__ or "").startswith("pyflink."):
            seen.update(vars(base))
    for name, value in sorted(seen.items()):
        function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
        if name == "__init__" and inspect.isfunction(function):
            parameters = shown_parameters(function)
            if "j_" not in parameters:  # made from a Java object: nobody calls it
                yield f"{path}.__init__{parameters}"
        elif name.startswith("_") or (issubclass(cls, enum.Enum) and name in cls.__members__):
            continue
        elif inspect.isfunction(function):
            yield f"{path}.{name}{shown_parameters(function, drop_first=not isinstance(value, staticmethod))}"
        elif inspect.isclass(value):
            yield f"{path}.{name}"
            yield from members(value, f"{path}.{name}")
        elif isinstance(value, property) or name.isupper():
            yield f"{path}.{name}"


def shown_parameters(function: Any, drop_first: bool = False) -> str:
    shown = []
    for index, parameter in enumerate(inspect.signature(function).parameters.values()):
        if (index == 0 and drop_first) or parameter.name == "self":
            continue
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = "" if parameter.default is parameter.empty else f"={plain(parameter.default)}"
        shown.append(f"{stars}{parameter.name}{default}")
    return f"({', '.join(shown)})"


def plain(default: Any) -> str:
    """A default as text that is the same in every process."""
    if default is None or isinstance(default, bool | int | float | str):
        return repr(default)
    if isinstance(default, enum.Enum):
        return f"{type(default).__name__}.{default.name}"
    return f"<{type(default).__name__}>"


if __name__ == "__main__":
    for each in modules():
        for line in lines_of(each):
            print(line)
