"""Finds the part of a user's object that cannot be pickled, and names it in words of the user's program."""

from __future__ import annotations

import functools
import pickle
import types
from collections.abc import Iterator, Mapping
from typing import Any

import cloudpickle

from headwater.common.errors import SerializationError, short_repr
from headwater.state.copying import PLAIN

_MAX_DEPTH = 12
_IN_OPEN = "create it in open()"
_CHECKED_AT_ONCE = 10_000
_CONTAINERS = (Mapping, list, tuple, set, frozenset)


def is_picklable(value: object) -> bool:
    """True if `value` can travel to another process."""
    try:
        cloudpickle.dumps(value)
    except Exception:
        return False
    return True


def require_picklable(items: list[Any], what: str, start: int = 0) -> None:
    """Raise `SerializationError`, with the number of the first item that cannot be pickled. For data in the program.

    `items` are the items of `what` from number `start` on. Call it from the API, so that the traceback shows the call.
    """
    if set(map(type, items)) <= PLAIN:
        return
    for first in range(0, len(items), _CHECKED_AT_ONCE):
        some = items[first : first + _CHECKED_AT_ONCE]
        try:
            pickle.dumps(some, protocol=5)  # many times faster than by value, which only lambdas and the like need
        except Exception:
            if not is_picklable(some):
                for index, item in enumerate(some, start + first):
                    _require_picklable(item, index, what)
    for index in {type(item): index for index, item in enumerate(items)}.values():  # one of each class, by value
        _require_picklable(items[index], start + index, what)


def _require_picklable(item: Any, index: int, what: str) -> None:
    reason = explain_unpicklable(item)
    if reason is not None:
        cause = reason.removesuffix(f"; {_IN_OPEN}")
        raise SerializationError(
            f"item {index} of {what}, {short_repr(item, 200)}: {cause}; put plain values into records, and make what "
            "cannot travel in a function's open()"
        )


def explain_unpicklable(value: object) -> str | None:
    """Return a sentence that names the innermost part that cannot be pickled; None if everything can be.

    An item of a container says little by itself, so the sentence also names the attribute or variable that holds it.
    """
    if is_picklable(value):
        return None
    place, culprit, cure = f"{_describe(value)}", value, _IN_OPEN
    owner: Any = value
    seen = {id(value)}
    for _ in range(_MAX_DEPTH):
        part = next(
            (part for part in _parts(owner) if id(part[2]) not in seen and not is_picklable(part[2])),
            None,
        )
        if part is None:
            break
        in_container = isinstance(owner, _CONTAINERS) and culprit is not value
        place, cure, culprit = (f"{part[0]} in {place}" if in_container else part[0]), part[1], part[2]
        seen.add(id(culprit))
        owner = culprit
    if culprit is value:
        return f"{place} cannot be pickled: {_pickle_error(value)}"
    return f"{place} is {_describe(culprit)}, which cannot be pickled; {cure}"


def _parts(owner: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield (where it is, what to do, the part) for everything that is pickled together with `owner`."""
    in_open = _IN_OPEN
    if isinstance(owner, functools.partial):
        yield "the function of a functools.partial", in_open, owner.func
        for index, item in enumerate(owner.args):
            yield f"argument {index} of a functools.partial", in_open, item
        for name, item in owner.keywords.items():
            yield f"argument '{name}' of a functools.partial", in_open, item
    elif isinstance(owner, types.MethodType):
        yield f"the object of method '{owner.__name__}'", in_open, owner.__self__
    elif isinstance(owner, types.FunctionType):
        yield from _parts_of_function(owner)
    elif isinstance(owner, Mapping):
        for key, item in owner.items():
            yield f"entry {key!r} of a {type(owner).__name__}", in_open, item
    elif isinstance(owner, list | tuple | set | frozenset):
        for index, item in enumerate(owner):
            yield f"item {index} of a {type(owner).__name__}", in_open, item
    else:
        for name, item in _attributes(owner):
            yield f"attribute '{name}' of {type(owner).__name__}", in_open, item


def _parts_of_function(function: types.FunctionType) -> Iterator[tuple[str, str, Any]]:
    name = "a lambda" if function.__name__ == "<lambda>" else f"function '{function.__name__}'"
    cure = "create it inside the function, or in open() of a function class"
    for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield f"variable '{variable}' used by {name}", cure, cell.cell_contents
        except ValueError:  # an empty cell: the variable is not assigned yet
            continue
    for variable in function.__code__.co_names:
        if variable in function.__globals__:
            yield f"global variable '{variable}' used by {name}", cure, function.__globals__[variable]
    for index, item in enumerate(function.__defaults__ or ()):
        yield f"default value {index} of {name}", cure, item


def _attributes(owner: Any) -> Iterator[tuple[str, Any]]:
    yield from getattr(owner, "__dict__", {}).items()
    for cls in type(owner).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(owner, name):
                yield name, getattr(owner, name)


def _describe(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _pickle_error(value: object) -> str:
    try:
        cloudpickle.dumps(value)
    except Exception as error:
        return str(error) or type(error).__name__
    return "it was picklable at the second attempt"
