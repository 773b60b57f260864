"""State as JSON, and keys from JSON. Values go out; only keys come in, and nothing that comes in is unpickled.

What JSON has (null, booleans, numbers, text, lists, objects with text as keys) is itself. A tuple is a list. Anything
else is an object with one name that begins with `$`:

    {"$bytes": "base64"}  {"$decimal": "1.50"}  {"$datetime": "iso"}  {"$date": "iso"}  {"$time": "iso"}
    {"$timedelta": seconds}  {"$uuid": "text"}  {"$float": "NaN"}  {"$enum": "NAME"}  {"$set": [...]}
    {"$row": [...]}  {"$list": [...]} (a list that is a key)  {"$map": [[key, value], ...]}
    {"$window": [start, end]}  {"$fraction": "1/3"}  {"$repr": "text"}
    {"$text": "caf\\udce9"} (text with a lone surrogate, escaped as in JSON: UTF-8 has no form for it)

A dataclass, a NamedTuple and a Row with names are objects with their fields.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import json
import math
import uuid
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

from headwater.common.errors import InvalidKeyError, short_repr
from headwater.common.query_error import QueryError, QueryProblem
from headwater.common.types import Row
from headwater.state.keys.frozen_keys import FrozenList, frozen
from headwater.state.keys.stable_hash import stable_hash
from headwater.time.windows import TimeWindow

MAX_KEY_CHARS = 4096
MAX_DEPTH = 32
"""Deeper values are shown as text: JSON readers give up on them."""
_NOT_A_WORD = '{["'


class OpaqueKey(str):
    """A key of a class that JSON does not tell: its JSON as text. It can be a bound of a scan, but not looked up."""

    __slots__ = ()


def to_json(value: Any, depth: int = 0) -> Any:
    """Return `value` as JSON has it. Never raises for a value: what has no form is `{"$repr": ...}`."""
    cls = type(value)
    if cls is int or cls is bool or value is None:
        return value
    if cls is str:
        return value if _is_unicode(value) else {"$text": json.dumps(value)[1:-1]}
    if cls is float:
        return value if math.isfinite(value) else {"$float": str(value)}
    if depth >= MAX_DEPTH:
        return {"$repr": short_repr(value)}
    if cls is list or cls is tuple:
        return [to_json(each, depth + 1) for each in value]
    if cls is dict:
        return _map_to_json(value, depth)
    return _object_to_json(value, depth)


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _map_to_json(value: dict[Any, Any], depth: int) -> Any:
    if all(type(key) is str and _is_unicode(key) for key in value) and not (
        len(value) == 1 and next(iter(value)).startswith("$")
    ):
        return {key: to_json(each, depth + 1) for key, each in value.items()}
    return {"$map": [[to_json(key, depth + 1), to_json(each, depth + 1)] for key, each in value.items()]}


def _object_to_json(value: Any, depth: int) -> Any:
    try:
        for cls, form in _FORMS:
            if isinstance(value, cls):
                return form(value, depth)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [field.name for field in dataclasses.fields(value)]
            return {name: to_json(getattr(value, name), depth + 1) for name in names}
        if isinstance(value, tuple):
            fields = getattr(value, "_fields", None)
            if fields:
                return {name: to_json(each, depth + 1) for name, each in zip(fields, value, strict=True)}
            return [to_json(each, depth + 1) for each in value]
        if isinstance(value, (int, str)):
            return int(value) if isinstance(value, int) else to_json(str.__str__(value), depth)
        item = getattr(value, "item", None)  # a scalar of numpy
        if callable(item) and getattr(value, "ndim", None) == 0:
            return to_json(item(), depth + 1)
    except Exception:  # a user's class may do anything
        pass
    return {"$repr": short_repr(value)}


def _row_to_json(row: Row, depth: int) -> Any:
    names = row.get_field_names()
    if names is not None:
        return {name: to_json(each, depth + 1) for name, each in zip(names, row, strict=True)}
    return {"$row": [to_json(each, depth + 1) for each in row]}


_FORMS: tuple[tuple[type, Callable[[Any, int], Any]], ...] = (
    (OpaqueKey, lambda value, depth: {"$opaque": str(value)}),
    (Enum, lambda value, depth: {"$enum": value.name}),
    (bytes, lambda value, depth: {"$bytes": base64.b64encode(value).decode()}),
    (bytearray, lambda value, depth: {"$bytes": base64.b64encode(value).decode()}),
    (Decimal, lambda value, depth: {"$decimal": str(value)}),
    (Fraction, lambda value, depth: {"$fraction": str(value)}),
    (datetime.datetime, lambda value, depth: {"$datetime": value.isoformat()}),
    (datetime.date, lambda value, depth: {"$date": value.isoformat()}),
    (datetime.time, lambda value, depth: {"$time": value.isoformat()}),
    (datetime.timedelta, lambda value, depth: {"$timedelta": value.total_seconds()}),
    (uuid.UUID, lambda value, depth: {"$uuid": str(value)}),
    (TimeWindow, lambda value, depth: {"$window": [value.start, value.end]}),
    (Row, _row_to_json),
    (FrozenList, lambda value, depth: {"$list": [to_json(each, depth + 1) for each in value]}),
    (set, lambda value, depth: {"$set": [to_json(each, depth + 1) for each in value]}),
    (frozenset, lambda value, depth: {"$set": [to_json(each, depth + 1) for each in value]}),
    (dict, _map_to_json),
    (list, lambda value, depth: [to_json(each, depth + 1) for each in value]),
)


# --- keys


def key_from_text(text: str) -> Any:
    """Return the key that a person types: JSON, or a bare word, which is text. Raises `QueryError` BAD_KEY."""
    if len(text) > MAX_KEY_CHARS:
        raise _bad_key(text, f"it has {len(text)} characters, the limit is {MAX_KEY_CHARS}")
    try:
        found = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        if text[:1] and text[0] not in _NOT_A_WORD:
            return text
        raise _bad_key(text, "it is not JSON") from None
    return key_from_json(found)


def key_from_json(found: Any) -> Any:
    """Return the key that `to_json` made `found` of. Raises `QueryError` BAD_KEY if it can be no key."""
    try:
        key = _parse(found, 0)
        stable_hash(key)
    except (InvalidKeyError, ValueError, TypeError, ArithmeticError, LookupError) as error:
        raise _bad_key(found, str(error)) from None
    return key


def key_of_row(found: Any) -> Any:
    """Return the key of an entry that a scan found."""
    try:
        return key_from_json(found)
    except QueryError:
        return OpaqueKey(json.dumps(found, sort_keys=True))


def bound_from_json(found: Any) -> Any:
    """Return the sort key of a bound of a scan. Raises `QueryError` BAD_KEY."""
    if isinstance(found, dict) and isinstance(found.get("$opaque"), str):
        return sort_key(OpaqueKey(found["$opaque"]))
    return sort_key(key_from_json(found))


def _parse(found: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ValueError("it is nested too deeply")
    if isinstance(found, list):
        return tuple(_parse(each, depth + 1) for each in found)
    if not isinstance(found, dict):
        return found
    if len(found) != 1:
        raise ValueError("an object is no key; write tuples as lists")
    ((name, content),) = found.items()
    parse = _PARSERS.get(name)
    if parse is None:
        raise ValueError(f"an object is no key, except {', '.join(sorted(_PARSERS))}")
    return parse(content, depth)


def _text(content: Any) -> str:
    if not isinstance(content, str):
        raise ValueError(f"expected text, found {short_repr(content)}")
    return content


_PARSERS: dict[str, Callable[[Any, int], Any]] = {
    "$bytes": lambda content, depth: base64.b64decode(_text(content), validate=True),
    "$decimal": lambda content, depth: Decimal(_text(content)),
    "$fraction": lambda content, depth: Fraction(_text(content)),
    "$datetime": lambda content, depth: datetime.datetime.fromisoformat(_text(content)),
    "$date": lambda content, depth: datetime.date.fromisoformat(_text(content)),
    "$time": lambda content, depth: datetime.time.fromisoformat(_text(content)),
    "$uuid": lambda content, depth: uuid.UUID(_text(content)),
    "$float": lambda content, depth: float(_text(content)),
    "$text": lambda content, depth: _text(json.loads(f'"{_text(content)}"')),
    "$list": lambda content, depth: frozen(list(_parse(content, depth + 1))),
    "$row": lambda content, depth: frozen(Row(*_parse(content, depth + 1))),
    "$window": lambda content, depth: TimeWindow(int(content[0]), int(content[1])),
}


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _bad_key(found: Any, why: str) -> QueryError:
    return QueryError(
        QueryProblem.BAD_KEY,
        f'the key {short_repr(found)} cannot be read: {why}; write a key as JSON, such as 42, "42" or [1, "a"]',
    )


def value_from_json(found: Any) -> Any:
    """Return a value as Python has it, as far as JSON tells: for people who read state with a program.

    An Enum is its name, an object with fields a dict. What cannot be in a set or be the key of a dict is a tuple, a
    frozenset or, with fields, an `OpaqueKey`; so is a key that would be equal to one before it.
    """
    if isinstance(found, list):
        return [value_from_json(each) for each in found]
    if not isinstance(found, dict):
        return found
    if len(found) == 1:
        ((name, content),) = found.items()
        if name == "$map":
            return _dict_from_json(content)
        if name == "$set":
            return {_hashable(each) for each in content}
        if name == "$timedelta":
            return datetime.timedelta(seconds=content)
        if name == "$list":
            return value_from_json(content)
        if name == "$row":
            return Row(*value_from_json(content))
        if name in ("$enum", "$repr"):
            return content
        if name in _PARSERS:
            return _PARSERS[name](content, 0)
    return {key: value_from_json(each) for key, each in found.items()}


def _dict_from_json(pairs: list[Any]) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    for form, value in pairs:
        key = _hashable(form)
        result[key if key not in result else OpaqueKey(json.dumps(form, sort_keys=True))] = value_from_json(value)
    return result


def _hashable(found: Any) -> Any:
    """Return the key of a dict, or a member of a set."""
    if isinstance(found, list):
        return tuple(map(_hashable, found))
    if not isinstance(found, dict):
        return found
    name = next(iter(found)) if len(found) == 1 else ""
    if name == "$set":
        return frozenset(map(_hashable, found[name]))
    if name == "$list":
        return frozen(list(map(_hashable, found[name])))
    if name == "$row":
        return frozen(Row(*map(_hashable, found[name])))
    if name == "$map" or not name.startswith("$"):
        return OpaqueKey(json.dumps(found, sort_keys=True))
    return value_from_json(found)


# --- order


def sort_key(key: Any) -> tuple[Any, ...]:
    """Return what orders keys of any kinds: nothing, numbers, text, bytes, tuples, all else by its JSON."""
    if key is None:
        return (0,)
    if isinstance(key, (int, float)) and key == key:
        return (1, key)
    if isinstance(key, OpaqueKey):
        return (5, str(key))
    if isinstance(key, str):
        return (2, key)
    if isinstance(key, bytes):
        return (3, key)
    if isinstance(key, tuple):
        return (4, tuple(map(sort_key, key)))
    return (5, json.dumps(to_json(key), sort_keys=True, default=str))
