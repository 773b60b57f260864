"""What can be known about a function without calling it."""

from __future__ import annotations

import inspect
from typing import Any


def accepts(function: Any, count: int) -> bool:
    """Return True if `function` takes `count` positional arguments, or if its signature is unknown (builtins)."""
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
    """Return how an error names `function` if it does not take `count` positional arguments; None if it does."""
    if not callable(function):
        return repr(function)
    return None if accepts(function, count) else signature_text(function)


def signature_text(function: Any) -> str:
    """Return how an error names `function`: `a lambda of (a, b)`, `parse(line)`."""
    name = getattr(function, "__name__", type(function).__name__)
    try:
        parameters = str(inspect.signature(function, follow_wrapped=False))
    except (TypeError, ValueError):
        parameters = "(...)"
    return f"a lambda of {parameters}" if name == "<lambda>" else f"{name}{parameters}"
