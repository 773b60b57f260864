"""Ready-made predicates for retry strategies, under PyFlink's path."""

from __future__ import annotations

from typing import Any


def empty_result_predicate(result: list[Any] | None) -> bool:
    """True if there are no results."""
    return not result


def has_exception_predicate(error: Exception | None) -> bool:
    """True for any exception."""
    return error is not None


def exception_type_predicate(error: Exception | None, expected_error_type: type[Exception]) -> bool:
    """True for exceptions of this type; bind the type with `functools.partial`."""
    return isinstance(error, expected_error_type)
