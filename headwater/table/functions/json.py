"""Functions of JSON.

Words of the syntax come as arguments: JSON_VALUE(json, path, type, on empty, default, on error, default),
JSON_QUERY(json, path, wrapper, on empty, on error), JSON_EXISTS(json, path, on error), JSON_OBJECT(on null, key, value,
...), JSON_ARRAY(on null, value, ...).
"""

from __future__ import annotations

import base64
import datetime
import json
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headwater.common.errors import ComputationError, FunctionTypeError
from headwater.table.functions.casting.arrays import cast_column
from headwater.table.functions.casting.to_text import write_floating
from headwater.table.functions.definition import Binding, BoundArgument, Column, FunctionDefinition, Signature
from headwater.table.functions.frame import Frame
from headwater.table.functions.json_path import PathNotFound, parse_path
from headwater.table.functions.kernels import as_array, row_by_row
from headwater.table.functions.signatures import ANY, TEXT, WORD, call
from headwater.table.types import logical as t
from headwater.table.types.logical import LogicalType

FAMILY = "JSON"
_MALFORMED = object()


def _load(text: str) -> Any:
    """The document, or _MALFORMED. Numbers keep their digits."""
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_refuse)
    except ValueError:
        return _MALFORMED


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def write_json(value: Any) -> str:
    """JSON without spaces, as Jackson writes it."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, float):
        return str(Decimal(write_floating(value))) if math.isfinite(value) else f'"{write_floating(value)}"'
    if isinstance(value, dict):
        return (
            "{"
            + ",".join(f"{json.dumps(key, ensure_ascii=False)}:{write_json(each)}" for key, each in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ",".join(write_json(each) for each in value) + "]"
    return json.dumps(value, ensure_ascii=False)


class _Failure(Exception):
    """What ON ERROR is about."""


def _find(text: str, path: str) -> list[Any]:
    document = _load(text)
    if document is _MALFORMED:
        raise _Failure(f"'{text[:100]}' is no JSON")
    try:
        return parse_path(path).find(document)
    except PathNotFound as error:
        raise _Failure(str(error)) from None


def _scalar_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)


def _bind_value(arguments: Sequence[BoundArgument]) -> Signature:
    found = call(TEXT, TEXT, ANY, WORD, ANY, WORD, ANY, result=t.STRING, optional=5, nullable=True)(arguments)
    if len(arguments) > 2 and not isinstance(arguments[2].literal, LogicalType):
        raise FunctionTypeError("JSON_VALUE: expected RETURNING with a type")
    result = arguments[2].literal if len(arguments) > 2 else t.STRING
    if result.root not in (t.TypeRoot.VARCHAR, t.TypeRoot.BOOLEAN, t.TypeRoot.INTEGER, t.TypeRoot.DOUBLE):
        raise FunctionTypeError(f"JSON_VALUE returns STRING, BOOLEAN, INT or DOUBLE, found {result.sql()}")
    return Signature(result.with_nullable(True), found.arguments)


def _value(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    texts, paths = (as_array(each, frame.rows).to_pylist() for each in columns[:2])
    empty, error = binding.literal(3, "NULL"), binding.literal(5, "NULL")
    found = []
    for text, path in zip(texts, paths, strict=True):
        found.append(None if text is None or path is None else _one_value(text, path, empty, error, binding))
    strings = pa.array(found, pa.string())
    if t.is_string(binding.result_type):
        return strings
    return cast_column(strings, t.STRING, binding.result_type, frame.zone)


def _one_value(text: str, path: str, empty: str, error: str, binding: Binding) -> str | None:
    try:
        values = _find(text, path)
        if values and (len(values) > 1 or isinstance(values[0], dict | list)):
            raise _Failure("the value is no scalar")
    except _Failure as failure:
        return _default(error, binding.literal(6), str(failure), "ON ERROR")
    if not values or values[0] is None:
        return _default(empty, binding.literal(4), "no value at the path", "ON EMPTY")
    return _scalar_text(values[0])


def _default(word: str, value: Any, problem: str, clause: str) -> str | None:
    if word == "ERROR":
        raise ComputationError(f"JSON_VALUE: {problem}, and {clause} is ERROR")
    return None if word == "NULL" or value is None else _scalar_text(value)


def _query(
    text: str, path: str, wrapper: str = "WITHOUT ARRAY", empty: str = "NULL", error: str = "NULL"
) -> str | None:
    try:
        values = _find(text, path)
        if wrapper.startswith("WITHOUT"):
            values = values if parse_path(path).definite else [values] if values else []
            if values and not isinstance(values[0], dict | list):
                raise _Failure("the value is a scalar")
    except _Failure as failure:
        document = _load(text)
        if document is not _MALFORMED and parse_path(path).leads_to_no_elements(document):
            return "[]"
        return _instead(error, str(failure), "ON ERROR")
    if not values or values[0] is None:
        return _instead(empty, "no value at the path", "ON EMPTY")
    if wrapper.startswith("WITHOUT"):
        return write_json(values[0])
    single = parse_path(path).definite
    if wrapper.startswith("CONDITIONAL") and single and isinstance(values[0], list):
        return write_json(values[0])
    return write_json([values[0]] if single else values)


def _instead(word: str, problem: str, clause: str) -> str | None:
    if word == "ERROR":
        raise ComputationError(f"JSON_QUERY: {problem}, and {clause} is ERROR")
    return {"EMPTY ARRAY": "[]", "EMPTY OBJECT": "{}"}.get(word)


def _exists(text: str, path: str, error: str = "FALSE") -> bool | None:
    try:
        return any(each is not None for each in _find(text, path))
    except _Failure as failure:
        if error == "ERROR":
            raise ComputationError(f"JSON_EXISTS: {failure}, and ON ERROR is ERROR") from None
        return {"TRUE": True, "FALSE": False}.get(error)


def _is_json(text: str | None, kind: str = "VALUE") -> bool:
    document = _MALFORMED if text is None else _load(text)
    if document is _MALFORMED:
        return False
    if kind == "ARRAY":
        return isinstance(document, list)
    if kind == "OBJECT":
        return isinstance(document, dict)
    return kind == "VALUE" or not isinstance(document, dict | list)


def to_json(value: Any, kind: LogicalType) -> Any:
    """A SQL value as JSON's: times as text, bytes in base 64, keys in order."""
    if value is None or isinstance(value, bool | int | float | str | Decimal):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(kind, t.ArrayType):
        return [to_json(each, kind.element) for each in value]
    if isinstance(kind, t.MapType):
        return {str(key): to_json(each, kind.value) for key, each in sorted(value)}
    if isinstance(kind, t.RowType):
        fields = sorted(kind.fields, key=lambda each: each.name)
        return {each.name: to_json(value[each.name], each.type) for each in fields}
    if isinstance(value, datetime.datetime):
        text = value.replace(tzinfo=None).isoformat()
        return (text.rstrip("0") if "." in text else text) + ("Z" if value.tzinfo else "")
    return str(value)


def _bind_object(arguments: Sequence[BoundArgument]) -> Signature:
    if len(arguments) % 2 == 0 or arguments[0].literal not in ("NULL", "ABSENT"):
        raise FunctionTypeError("JSON_OBJECT takes pairs of a key and a value")
    for key in arguments[1::2]:
        if not t.is_string(key.type) or key.type.nullable:
            raise FunctionTypeError(f"a key of JSON_OBJECT must be a string that is not NULL, found {key.type.sql()}")
    return Signature(t.STRING.not_null(), tuple(each.type for each in arguments))


def _bind_json_array(arguments: Sequence[BoundArgument]) -> Signature:
    if not arguments or arguments[0].literal not in ("NULL", "ABSENT"):
        raise FunctionTypeError("JSON_ARRAY: the first argument must be the word NULL or ABSENT")
    return Signature(t.STRING.not_null(), tuple(each.type for each in arguments))


def _rows(columns: Sequence[Column], frame: Frame) -> Any:
    return zip(*(as_array(each, frame.rows).to_pylist() for each in columns), strict=True)


def _object(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    kinds, absent = binding.arg_types, binding.literal(0) == "ABSENT"
    found = []
    for row in _rows(columns, frame):
        document = {}
        for at in range(1, len(row), 2):
            if row[at + 1] is not None or not absent:
                document[row[at]] = to_json(row[at + 1], kinds[at + 1])
        found.append(write_json(dict(sorted(document.items()))))
    return pa.array(found, pa.string())


def _array(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    kinds, absent = binding.arg_types, binding.literal(0) == "ABSENT"
    found = []
    for row in _rows(columns, frame):
        values = [to_json(each, kind) for each, kind in zip(row[1:], kinds[1:], strict=True)]
        found.append(write_json([each for each in values if each is not None or not absent]))
    return pa.array(found, pa.string())


def _string(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    kind = binding.arg_types[0]
    return row_by_row(lambda value: write_json(to_json(value, kind)))(columns, binding, frame)


def _quote(text: str) -> str:
    return json.dumps(text)


def _unquote(text: str) -> str:
    """Text that is no JSON string stays as it is."""
    if not re.fullmatch(r'".*"', text, re.DOTALL):
        return text
    document = _load(text)
    return document if isinstance(document, str) else text


def _on_null(name: str) -> Callable[[Sequence[str]], str]:
    def written(arguments: Sequence[str]) -> str:
        pairs = arguments[1:]
        if name == "JSON_OBJECT":
            pairs = [f"KEY {pairs[at]} VALUE {pairs[at + 1]}" for at in range(0, len(pairs), 2)]
        return f"{name}({', '.join(pairs)} {arguments[0]} ON NULL)"

    return written


def _write_value(arguments: Sequence[str]) -> str:
    text = ", ".join(arguments[:2])
    if len(arguments) > 2:
        text += f" RETURNING {arguments[2]}"
    for at, clause in ((3, "ON EMPTY"), (5, "ON ERROR")):
        if len(arguments) > at:
            value = f" {arguments[at + 1]}" if arguments[at] == "DEFAULT" else ""
            text += f" {arguments[at]}{value} {clause}"
    return f"JSON_VALUE({text})"


def _write_query(arguments: Sequence[str]) -> str:
    text = ", ".join(arguments[:2])
    if len(arguments) > 2:
        word = arguments[2] if arguments[2].startswith("WITHOUT") else f"WITH {arguments[2]}"
        text += f" {word} WRAPPER"
    for at, clause in ((3, "ON EMPTY"), (4, "ON ERROR")):
        text += f" {arguments[at]} {clause}" if len(arguments) > at else ""
    return f"JSON_QUERY({text})"


FUNCTIONS = (
    FunctionDefinition(
        "JSON_VALUE",
        FAMILY,
        _bind_value,
        "JSON_VALUE(json, path [RETURNING type] [{NULL | ERROR | DEFAULT x} ON EMPTY] [... ON ERROR])",
        "The scalar at a path.",
        compute=_value,
        text=_write_value,
    ),
    FunctionDefinition(
        "JSON_QUERY",
        FAMILY,
        call(TEXT, TEXT, WORD, WORD, WORD, result=t.STRING, optional=3, nullable=True),
        "JSON_QUERY(json, path [{WITHOUT | WITH [CONDITIONAL | UNCONDITIONAL]} ARRAY WRAPPER] [... ON EMPTY]"
        " [... ON ERROR])",
        "The object or array at a path, as JSON.",
        compute=row_by_row(_query),
        text=_write_query,
    ),
    FunctionDefinition(
        "JSON_EXISTS",
        FAMILY,
        call(TEXT, TEXT, WORD, result=t.BOOLEAN, optional=1, nullable=True),
        "JSON_EXISTS(json, path [{TRUE | FALSE | UNKNOWN | ERROR} ON ERROR])",
        "True if there is something at the path.",
        compute=row_by_row(_exists),
        text=lambda a: f"JSON_EXISTS({', '.join(a[:2])}{f' {a[2]} ON ERROR' if len(a) > 2 else ''})",
    ),
    FunctionDefinition(
        "JSON_OBJECT",
        FAMILY,
        _bind_object,
        "JSON_OBJECT([KEY k VALUE v, ...] [{NULL | ABSENT} ON NULL])",
        "An object of these.",
        compute=_object,
        text=_on_null("JSON_OBJECT"),
        note="A value that is itself a call of a JSON function is written as a string; Flink nests it.",
    ),
    FunctionDefinition(
        "JSON_ARRAY",
        FAMILY,
        _bind_json_array,
        "JSON_ARRAY([a, ...] [{NULL | ABSENT} ON NULL])",
        "An array of these.",
        compute=_array,
        text=_on_null("JSON_ARRAY"),
        note="A value that is itself a call of a JSON function is written as a string; Flink nests it.",
    ),
    FunctionDefinition(
        "JSON_STRING",
        FAMILY,
        call(ANY, result=t.STRING),
        "JSON_STRING(a)",
        "The value as JSON; NULL of NULL.",
        compute=_string,
    ),
    FunctionDefinition(
        "IS JSON",
        FAMILY,
        call(TEXT, WORD, result=t.BOOLEAN, optional=1, nullable=False),
        "s IS JSON [VALUE | SCALAR | ARRAY | OBJECT]",
        "True if the text is JSON, of that kind.",
        compute=row_by_row(_is_json, strict=False),
        text=lambda a: f"({a[0]} IS JSON{f' {a[1]}' if len(a) > 1 else ''})",
    ),
    FunctionDefinition(
        "JSON_QUOTE",
        FAMILY,
        call(TEXT, result=t.STRING),
        "JSON_QUOTE(s)",
        "The text as a JSON string.",
        compute=row_by_row(_quote),
    ),
    FunctionDefinition(
        "JSON_UNQUOTE",
        FAMILY,
        call(TEXT, result=t.STRING),
        "JSON_UNQUOTE(s)",
        "The text of a JSON string.",
        compute=row_by_row(_unquote),
    ),
)
