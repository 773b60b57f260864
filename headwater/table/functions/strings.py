"""Functions of strings. Positions start at 1 and count characters (code points)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.table.functions.definition import (
    Bind,
    Binding,
    BoundArgument,
    Column,
    FunctionDefinition,
    Kernel,
    Signature,
    SparkText,
)
from headwater.table.functions.frame import Frame
from headwater.table.functions.kernels import as_array, infix, row_by_row, spark, vectorised
from headwater.table.functions.signatures import BINARY, INT32, INT64, TEXT, TEXT_OR_BINARY, WORD, call, one_of
from headwater.table.types import logical as t
from headwater.table.types.logical import LogicalType

FAMILY = "strings"


def _as_varchar(types: Sequence[LogicalType]) -> LogicalType:
    """A string that is at most as long as the first argument."""
    kind = types[0]
    assert isinstance(kind, t.CharType | t.VarCharType)
    return t.VarCharType(length=max(1, kind.length))


def define(
    name: str,
    bind: Bind,
    syntax: str,
    text: str,
    compute: Kernel,
    spark_text: str | SparkText | None = None,
    written: Callable[[Sequence[str]], str] | None = None,
    aliases: tuple[str, ...] = (),
) -> FunctionDefinition:
    native = spark(spark_text) if isinstance(spark_text, str) else spark_text
    return FunctionDefinition(
        name, FAMILY, bind, syntax, text, compute=compute, spark_text=native, text=written, aliases=aliases
    )


def _bind_joined(arguments: Sequence[BoundArgument]) -> Signature:
    """`||`: of fixed lengths, a fixed length."""
    found = one_of(
        call(BINARY, BINARY, result=t.BYTES, variadic=True), call(TEXT, TEXT, result=t.STRING, variadic=True)
    )(arguments)
    lengths = [getattr(each, "length", t.MAX_LENGTH) for each in found.arguments]
    total = min(t.MAX_LENGTH, sum(lengths))
    fixed = all(isinstance(each, t.CharType | t.BinaryType) for each in found.arguments)
    kind: LogicalType
    if t.is_binary(found.result):
        kind = t.BinaryType(length=total) if fixed else t.VarBinaryType(length=total)
    else:
        kind = t.CharType(length=total) if fixed else t.VarCharType(length=total)
    return Signature(kind.with_nullable(found.result.nullable), found.arguments)


def _join(*columns: Column) -> Column:
    kind = columns[0].type
    return pc.binary_join_element_wise(*columns, pa.scalar("" if kind == pa.string() else b"", kind))


def _concat_ws(separator: str | None, *parts: str | None) -> str | None:
    return None if separator is None else separator.join(part for part in parts if part is not None)


def substring(value: str, start: int, length: int | None = None) -> str | None:
    """A negative start counts from the end. NULL for a negative length."""
    if length is not None and length < 0:
        return None
    if start > 0:
        begin = start - 1
    else:
        begin = len(value) + start if start < 0 else 0
        if begin < 0:
            return ""
    return value[begin:] if length is None else value[begin : begin + length]


def _substring(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    values, *bounds = columns
    numbers = [each.as_py() for each in bounds if isinstance(each, pa.Scalar)]
    plain = len(numbers) == len(bounds) and all(each is not None for each in numbers)
    if plain and numbers[0] > 0 and (len(numbers) == 1 or numbers[1] >= 0):
        stop = numbers[0] - 1 + numbers[1] if len(numbers) == 2 else None
        return pc.utf8_slice_codeunits(values, numbers[0] - 1, stop)
    return row_by_row(substring)(columns, binding, frame)


def _spark_substring(arguments: Sequence[str], binding: Binding) -> str | None:
    start, length = binding.literal(1), binding.literal(2)
    if not isinstance(start, int) or start < 1 or (len(arguments) == 3 and (not isinstance(length, int) or length < 0)):
        return None
    return f"substring({', '.join(arguments)})"


def _trimmed(side: str, letters: str | None, value: str) -> str:
    chars = " " if letters is None else letters
    if side == "LEADING":
        return value.lstrip(chars) if chars else value
    if side == "TRAILING":
        return value.rstrip(chars) if chars else value
    return value.strip(chars) if chars else value


def _trim(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    side, letters, values = columns
    if isinstance(letters, pa.Scalar) and letters.is_valid and letters.as_py():
        kernel = {"LEADING": pc.utf8_ltrim, "TRAILING": pc.utf8_rtrim, "BOTH": pc.utf8_trim}[side.as_py()]
        return kernel(values, characters=letters.as_py())
    return row_by_row(_trimmed)(columns, binding, frame)


def _bind_trim(arguments: Sequence[BoundArgument]) -> Signature:
    return call(WORD, TEXT, TEXT, result=lambda types: _as_varchar(types[2:]))(arguments)


def _trim_of(side: str) -> Callable[..., str]:
    return lambda value, letters=" ": _trimmed(side, letters, value)


def _pad(left: bool) -> Callable[[str, int, str], str | None]:
    def pad(value: str, length: int, filler: str) -> str | None:
        if length < 0 or not filler:
            return None
        if length <= len(value):
            return value[:length]
        missing = length - len(value)
        fill = (filler * (missing // len(filler) + 1))[:missing]
        return fill + value if left else value + fill

    return pad


def _overlay(value: str, other: str, start: int, length: int | None = None) -> str:
    if start <= 0 or start > len(value):
        return value
    count = len(other) if length is None else length
    end = start - 1 + count
    if end < 0 or count < 0:
        return value[: start - 1] + other + value[max(0, end) :]
    return value[: start - 1] + other + value[end:]


def _initcap(value: str) -> str:
    """Words are of ASCII letters and digits; other letters stay as they are."""
    found, inside = [], False
    for letter in value:
        if letter.isascii() and letter.isalnum():
            found.append(letter.lower() if inside else letter.upper())
            inside = True
        else:
            found.append(letter)
            inside = False
    return "".join(found)


def _locate(needle: str, value: str, start: int = 1) -> int:
    return value.find(needle, max(0, start - 1)) + 1 if needle else 1


def _split_index(value: str, separator: Any, index: int) -> str | None:
    if isinstance(separator, int):
        if not 0 <= separator <= 255:
            return None
        separator = chr(separator)
    if index < 0 or not value:
        return None
    parts = value.split(separator) if separator else value.split()
    return parts[index] if index < len(parts) else None


def _split_index_column(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    values, separator, index = columns
    literals = isinstance(separator, pa.Scalar) and isinstance(index, pa.Scalar)
    if literals and isinstance(values, pa.Array) and isinstance(separator.as_py(), str) and separator.as_py():
        place = index.as_py()
        if place is not None and 0 <= place < 1000:
            parts = pc.split_pattern(values, separator.as_py(), max_splits=place + 1)
            enough = pc.and_(pc.greater(pc.list_value_length(parts), place), pc.not_equal(values, ""))
            safe = pc.if_else(pc.fill_null(enough, False), values, pa.scalar(None, values.type))
            known = pc.split_pattern(safe.drop_null(), separator.as_py(), max_splits=place + 1)
            picked = pc.list_element(known, place)
            return pc.replace_with_mask(pa.nulls(len(values), pa.string()), pc.is_valid(safe), picked)
    return row_by_row(_split_index)(columns, binding, frame)


def _split(value: str, separator: str) -> list[str]:
    if not value:
        return []
    return value.split(separator) if separator else list(value)


def _chr(code: int) -> str:
    return "" if code < 0 else chr(code % 256)


def _translate(value: str | None, source: str | None, target: str | None) -> str | None:
    if value is None or not source:
        return value
    table: dict[int, str | None] = {}
    for at, letter in enumerate(source):
        table.setdefault(ord(letter), target[at] if target is not None and at < len(target) else None)
    return value.translate(table)


def _elt(index: int | None, *values: Any) -> Any:
    return values[index - 1] if index is not None and 1 <= index <= len(values) else None


def _is_decimal(value: str) -> bool:
    return re.fullmatch(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", value.strip(), re.ASCII) is not None


def _test(name: str, function: Callable[[str], bool], text: str) -> FunctionDefinition:
    def check(value: str | None) -> bool:
        return value is not None and function(value)

    return define(
        name, call(TEXT, result=t.BOOLEAN, nullable=False), f"{name}(s)", text, row_by_row(check, strict=False)
    )


def _length(column: Column) -> Column:
    return pc.utf8_length(column) if column.type == pa.string() else pc.binary_length(column)


def _concat(columns: Sequence[Column], binding: Binding, frame: Frame) -> Column:
    return _join(*columns) if len(columns) > 1 else as_array(columns[0], frame.rows)


FUNCTIONS = (
    define(
        "||",
        _bind_joined,
        "a || b",
        "Both joined.",
        vectorised(_join),
        "({0} || {1})",
        infix("||"),
    ),
    define(
        "CONCAT",
        call(TEXT, result=t.STRING, variadic=True),
        "CONCAT(a, ...)",
        "All joined; NULL if one is NULL.",
        _concat,
        "concat({all})",
    ),
    define(
        "CONCAT_WS",
        call(TEXT, TEXT, result=t.STRING, variadic=True),
        "CONCAT_WS(separator, a, ...)",
        "All that are not NULL, joined by the separator.",
        row_by_row(_concat_ws, strict=False),
        "concat_ws({all})",
    ),
    define(
        "CHAR_LENGTH",
        call(TEXT, result=t.INT),
        "CHAR_LENGTH(s)",
        "The number of characters.",
        vectorised(_length),
        "char_length({0})",
        aliases=("CHARACTER_LENGTH",),
    ),
    define(
        "UPPER",
        call(TEXT, result=lambda types: types[0]),
        "UPPER(s)",
        "In capitals.",
        row_by_row(str.upper),
        "upper({0})",
        aliases=("UCASE",),
    ),
    define(
        "LOWER",
        call(TEXT, result=lambda types: types[0]),
        "LOWER(s)",
        "In small letters.",
        row_by_row(str.lower),
        "lower({0})",
        aliases=("LCASE",),
    ),
    define("INITCAP", call(TEXT, result=_as_varchar), "INITCAP(s)", "Each word with a capital.", row_by_row(_initcap)),
    define(
        "SUBSTRING",
        call(TEXT, INT32, INT32, result=_as_varchar, optional=1, nullable=True),
        "SUBSTRING(s FROM start [FOR length])",
        "Part of the string. A negative start counts from the end.",
        _substring,
        _spark_substring,
        lambda a: f"SUBSTRING({a[0]} FROM {a[1]}{f' FOR {a[2]}' if len(a) == 3 else ''})",
        aliases=("SUBSTR",),
    ),
    define(
        "LEFT",
        call(TEXT, INT32, result=t.STRING),
        "LEFT(s, n)",
        "The first n characters.",
        row_by_row(lambda value, count: value[: max(0, count)]),
        "left({0}, {1})",
    ),
    define(
        "RIGHT",
        call(TEXT, INT32, result=t.STRING),
        "RIGHT(s, n)",
        "The last n characters.",
        row_by_row(lambda value, count: value[-count:] if count > 0 else ""),
        "right({0}, {1})",
    ),
    define(
        "POSITION",
        call(TEXT, TEXT, result=t.INT),
        "POSITION(a IN b)",
        "Where a begins in b; 0 if it does not occur.",
        row_by_row(lambda needle, value: value.find(needle) + 1),
        "position({0} IN {1})",
        lambda a: f"POSITION({a[0]} IN {a[1]})",
    ),
    define(
        "LOCATE",
        call(TEXT, TEXT, INT32, result=t.INT, optional=1),
        "LOCATE(a, b [, start])",
        "Where a begins in b, from a position on; 0 if it does not occur.",
        row_by_row(_locate),
    ),
    define(
        "INSTR",
        call(TEXT, TEXT, result=t.INT),
        "INSTR(b, a)",
        "Where a begins in b; 0 if it does not occur.",
        row_by_row(lambda value, needle: value.find(needle) + 1),
        "instr({0}, {1})",
    ),
    define(
        "TRIM",
        _bind_trim,
        "TRIM([BOTH | LEADING | TRAILING] [chars FROM] s)",
        "Without these characters (spaces) at its ends.",
        _trim,
        lambda a, b: f"trim({b.literal(0)} {a[1]} FROM {a[2]})" if b.literal(1) else None,
        lambda a: f"TRIM({a[0]} {a[1]} FROM {a[2]})",
    ),
    define(
        "LTRIM",
        call(TEXT, TEXT, result=t.STRING, optional=1),
        "LTRIM(s [, chars])",
        "Without these characters (spaces) at its beginning.",
        row_by_row(_trim_of("LEADING")),
    ),
    define(
        "RTRIM",
        call(TEXT, TEXT, result=t.STRING, optional=1),
        "RTRIM(s [, chars])",
        "Without these characters (spaces) at its end.",
        row_by_row(_trim_of("TRAILING")),
    ),
    define(
        "BTRIM",
        call(TEXT, TEXT, result=t.STRING, optional=1),
        "BTRIM(s [, chars])",
        "Without these characters (spaces) at both ends.",
        row_by_row(_trim_of("BOTH")),
    ),
    define(
        "LPAD",
        call(TEXT, INT32, TEXT, result=t.STRING, nullable=True),
        "LPAD(s, n, fill)",
        "Filled up from the left, or cut, to n characters.",
        row_by_row(_pad(True)),
    ),
    define(
        "RPAD",
        call(TEXT, INT32, TEXT, result=t.STRING, nullable=True),
        "RPAD(s, n, fill)",
        "Filled up from the right, or cut, to n characters.",
        row_by_row(_pad(False)),
    ),
    define(
        "REPEAT",
        call(TEXT, INT32, result=t.STRING),
        "REPEAT(s, n)",
        "n times the string.",
        row_by_row(lambda value, count: value * count),
        "repeat({0}, {1})",
    ),
    define(
        "REVERSE",
        call(TEXT, result=t.STRING),
        "REVERSE(s)",
        "Backwards.",
        row_by_row(lambda value: value[::-1]),
        "reverse({0})",
    ),
    define(
        "REPLACE",
        call(TEXT, TEXT, TEXT, result=t.STRING),
        "REPLACE(s, a, b)",
        "Each a replaced by b.",
        row_by_row(str.replace),
    ),
    define(
        "TRANSLATE",
        call(TEXT, TEXT, TEXT, result=t.STRING, nullable=True),
        "TRANSLATE(s, from, to)",
        "Each character of `from` replaced by that of `to` at its place, or left out.",
        row_by_row(_translate, strict=False),
    ),
    define(
        "OVERLAY",
        call(TEXT, TEXT, INT32, INT32, result=t.STRING, optional=1),
        "OVERLAY(a PLACING b FROM start [FOR n])",
        "a with n characters (as many as b has) replaced by b.",
        row_by_row(_overlay),
        None,
        lambda a: f"OVERLAY({a[0]} PLACING {a[1]} FROM {a[2]}{f' FOR {a[3]}' if len(a) == 4 else ''})",
    ),
    define(
        "STARTSWITH",
        one_of(call(TEXT, TEXT, result=t.BOOLEAN), call(BINARY, BINARY, result=t.BOOLEAN)),
        "STARTSWITH(s, prefix)",
        "True if it begins so.",
        row_by_row(lambda value, edge: value.startswith(edge)),
        "startswith({0}, {1})",
    ),
    define(
        "ENDSWITH",
        one_of(call(TEXT, TEXT, result=t.BOOLEAN), call(BINARY, BINARY, result=t.BOOLEAN)),
        "ENDSWITH(s, suffix)",
        "True if it ends so.",
        row_by_row(lambda value, edge: value.endswith(edge)),
        "endswith({0}, {1})",
    ),
    define(
        "SPLIT_INDEX",
        one_of(
            call(TEXT, INT32, INT32, result=t.STRING, nullable=True),
            call(TEXT, TEXT, INT32, result=t.STRING, nullable=True),
        ),
        "SPLIT_INDEX(s, separator, i)",
        "The i-th part, from 0, of a string split; NULL if there is none.",
        _split_index_column,
    ),
    define(
        "SPLIT",
        call(TEXT, TEXT, result=t.ArrayType(element=t.STRING)),
        "SPLIT(s, separator)",
        "The parts of a string; its characters if the separator is empty.",
        row_by_row(_split),
    ),
    define(
        "ASCII",
        call(TEXT, result=t.INT),
        "ASCII(s)",
        "The first byte; 0 of an empty string.",
        row_by_row(lambda value: int.from_bytes(value.encode()[:1], "big", signed=True)),
    ),
    define(
        "CHR",
        call(INT64, result=t.STRING),
        "CHR(i)",
        "The character of Latin-1 with that number, modulo 256.",
        row_by_row(_chr),
    ),
    define(
        "ELT",
        one_of(
            call(INT64, TEXT, result=t.STRING, variadic=True, nullable=True),
            call(INT64, TEXT_OR_BINARY, result=t.BYTES, variadic=True, nullable=True),
        ),
        "ELT(i, a, ...)",
        "The i-th of the arguments, from 1.",
        row_by_row(_elt, strict=False),
    ),
    _test("IS_ALPHA", str.isalpha, "True if all characters are letters."),
    _test("IS_DIGIT", str.isdigit, "True if all characters are digits."),
    _test("IS_DECIMAL", _is_decimal, "True if it can be read as a number."),
)
