"""Find a function by its name."""

from __future__ import annotations

import difflib
from functools import cache

from headwater.table.functions.definition import FunctionDefinition


@cache
def _by_name() -> dict[str, FunctionDefinition]:
    found: dict[str, FunctionDefinition] = {}
    for definition in all_functions():
        for name in (definition.name, *definition.aliases):
            assert name not in found, f"two functions are called {name}"
            found[name] = definition
    return found


@cache
def all_functions() -> tuple[FunctionDefinition, ...]:
    """Every function of the system, family by family."""
    from headwater.table.functions import families

    return families.ALL


def lookup(name: str) -> FunctionDefinition | None:
    """Return the system's function of that name, or None. Case does not matter. Operators have their sign as name."""
    return _by_name().get(" ".join(name.upper().split()))


def nearest(name: str) -> str | None:
    """Return the known name that is most like `name`, for an error's text, or None."""
    found = difflib.get_close_matches(name.upper(), _by_name(), n=1, cutoff=0.6)
    return found[0] if found else None
