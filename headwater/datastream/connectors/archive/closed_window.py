"""The result of one window of one key, and its form in an archive: keys and values are JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from headwater.common.errors import InvalidKeyError, TypeMismatchError, short_repr
from headwater.operators.functions.window import WindowFunction
from headwater.state.query.json_form import to_json
from headwater.time.windows import TimeWindow

_NO_FORM = '{"$repr":'
"""How the JSON of an object begins that has none. In text, its quotes would be escaped."""


class ClosedWindow(NamedTuple):
    """The result of a window of `key` from `start_ms` up to, but not including, `end_ms`."""

    key: Any
    start_ms: int
    end_ms: int
    value: Any


class ToClosedWindow(WindowFunction[Any, ClosedWindow, Any, TimeWindow]):
    """Says with each result which window of which key it is of."""

    def apply(self, key: Any, window: TimeWindow, inputs: Iterable[Any]) -> list[ClosedWindow]:
        return [ClosedWindow(key, window.start, window.end, value) for value in inputs]


def key_text(key: Any) -> str:
    """Return `key` as JSON. Equal keys give equal text: `1`, `1.0` and `True` are one key, so they are one text."""
    kind = type(key)
    if kind is int:
        return str(key)
    if kind is str and key.isascii():
        return encode_basestring(key)
    return _json(_plain_key(key))


def _plain_key(key: Any) -> Any:
    if isinstance(key, str):
        return str.__str__(key)
    if isinstance(key, bool | int):
        return int(key)
    if isinstance(key, float) and math.isfinite(key):
        return int(key) if key.is_integer() else float(key)
    if key is None:
        return None
    if isinstance(key, tuple):
        return [_plain_key(part) for part in key]
    raise InvalidKeyError(
        f"a key of a series is JSON: text, a number, None or a tuple of these; found {type(key).__name__}: "
        f"{short_repr(key)}. Let key_by return one of them, such as str(key)"
    )


def value_text(value: Any) -> str:
    """Return `value` in the form in which queries show it. Raises TypeMismatchError if it has none."""
    if type(value) is int:
        return str(value)
    text = _json(to_json(value))
    if _NO_FORM in text:
        raise TypeMismatchError(
            f"the value of a window in a series has no form in JSON: {type(value).__name__} {short_repr(value)}. Let "
            f"the function of the window return numbers, text, times, lists, dicts or dataclasses of these"
        )
    return text


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:  # half of a surrogate pair: no database takes it as it is
            return json.dumps(value, separators=(",", ":"))
    return text
