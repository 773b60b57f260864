"""Turns each way to name a key into a callable, for routing and for keyed operators."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from headwater.common.callables import accepts, signature_text
from headwater.common.errors import PlanError, TypeMismatchError, short_repr
from headwater.operators.functions.plain import Function, KeySelector, Partitioner

KeyFunction = Callable[[Any], Any]


def key_function(method: str, selector: Any) -> KeyFunction:
    """`selector` as a callable: a function, a KeySelector, or the index or name of a field.

    A field name works for records with `[]`: rows, dicts; an index for tuples, lists and rows.
    """
    if isinstance(selector, KeySelector):
        _check_no_life_cycle(method, selector)
        return selector.get_key
    if isinstance(selector, str) or (isinstance(selector, int) and not isinstance(selector, bool)):
        return operator.itemgetter(selector)
    if isinstance(selector, type) and issubclass(selector, Function):
        raise TypeMismatchError(f"{method}() got the class {selector.__name__}; did you forget to call it?")
    if isinstance(selector, type):
        return partial(selector)  # key_by(str): a class like any other callable
    if not callable(selector) or not accepts(selector, 1):
        found = (
            f"{signature_text(selector)}, which cannot take a record" if callable(selector) else short_repr(selector)
        )
        raise TypeMismatchError(
            f"{method}() expects a function, a KeySelector, or the index or name of a field, found {found}"
        )
    return selector  # type: ignore[no-any-return]


def partition_function(partitioner: Any) -> Callable[[Any, int], int]:
    """`partitioner` as a callable `(key, number of partitions) -> partition`."""
    if isinstance(partitioner, Partitioner):
        _check_no_life_cycle("partition_custom", partitioner)
        return partitioner.partition
    wrong = not callable(partitioner) or isinstance(partitioner, type)
    if wrong or not accepts(partitioner, 2):
        raise TypeMismatchError(
            f"partition_custom() expects a function (key, number of partitions) or a Partitioner, "
            f"found {short_repr(partitioner) if wrong else signature_text(partitioner)}"
        )
    return partitioner  # type: ignore[no-any-return]


def _check_no_life_cycle(method: str, function: Function) -> None:
    """Raise if a key selector or partitioner needs `open` or `close`: routing cannot call them."""
    for name in ("open", "close"):
        if getattr(type(function), name) is not getattr(Function, name):
            raise PlanError(
                f"{method}(): {type(function).__name__} has {name}(), which nobody calls while records are routed; "
                f"prepare what it needs in __init__, or compute the key in a map() before"
            )
