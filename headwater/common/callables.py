"""What can be known about a function without calling it."""

from __future__ import annotations

import inspect
from typing import Any


def accepts(function: Any, count: int) -> bool:
    """Whether `function` can be called with `count` positional arguments; True where nobody can tell (builtins)."""
    try:
        signature = inspect.signature(function, follow_wrapped=False)  # a decorator may pass on other arguments
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def unfit(function: Any, count: int) -> str | None:
    """What an error calls `function`, if it cannot be called with `count` positional arguments; None if it can."""
    if not callable(function):
        return repr(function)
    return None if accepts(function, count) else signature_text(function)


def signature_text(function: Any) -> str:
    """For an error: `a lambda of (a, b)`, `function 'parse' of ()`."""
    name = getattr(function, "__name__", type(function).__name__)
    try:
        parameters = str(inspect.signature(function, follow_wrapped=False))
    except (TypeError, ValueError):
        parameters = "(...)"
    return f"a lambda of {parameters}" if name == "<lambda>" else f"{name}{parameters}"
