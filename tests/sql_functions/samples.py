"""A table of awkward values, from which the tests of functions take their arguments; and how values are compared.

The same values go to real Flink (`scripts/record_flink_functions.py`), to the kernels and to Spark.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headwater.table.types.arrow import to_arrow
from headwater.table.types.logical import LogicalType, TypeRoot
from headwater.table.types.type_text import parse_type

ZONE = "America/New_York"
"""The session's time zone of the recordings: it has an hour twice and a gap."""

D, DT, NAN, INF = Decimal, datetime.datetime, float("nan"), float("inf")
UTC = datetime.UTC

COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "i": ("INT", [0, 1, -1, 2147483647, -2147483648, None, 7, 42]),
    "j": ("INT", [3, -2, 7, 2, -1, 5, None, 10]),
    "l": ("BIGINT", [0, 1, -1, 9223372036854775807, -9223372036854775808, None, 1234567890123, 42]),
    "k": ("BIGINT", [3, -2, 7, 2, -1, 5, None, 10]),
    "ti": ("TINYINT", [0, 1, -1, 127, -128, None, 7, 42]),
    "si": ("SMALLINT", [0, 1, -1, 32767, -32768, None, 7, 42]),
    "d": ("DOUBLE", [0.0, 1.5, -2.5, 1e300, NAN, None, INF, 0.1]),
    "e": ("DOUBLE", [3.0, -0.5, 2.0, 1e10, 1.0, 5.0, None, 0.3]),
    "f": ("FLOAT", [0.0, 1.5, -2.5, 1e30, -1.0, None, 3.25, 0.1]),
    "n": (
        "DECIMAL(10, 2)",
        [D("0.00"), D("1.25"), D("-1.25"), D("99999999.99"), D("-99999999.99"), None, D("0.05"), D("12.35")],
    ),
    "m": ("DECIMAL(5, 1)", [D("2.0"), D("-3.3"), D("0.7"), D("9999.9"), D("-9999.9"), D("1.0"), None, D("-0.1")]),
    "w": ("DECIMAL(38, 0)", [D(0), D(1), D(-1), D("9" * 38), D("-" + "9" * 38), None, D(7), D("12345678901234567890")]),
    "b": ("BOOLEAN", [True, True, True, False, False, False, None, None]),
    "c": ("BOOLEAN", [True, False, None, True, False, None, True, None]),
    "s": ("STRING", ["", "Hello World", "äöü ß", "日本語", " pad ", None, "a,b,,c", "abc123abc"]),
    "u": ("STRING", ["", "o", "ö", "本", " ", "x", "a", None]),
    "num": ("STRING", ["0", " 12 ", "-7.9", "1e3", "abc", None, "", "99999999999"]),
    "dts": (
        "STRING",
        [
            "1970-01-01",
            "2020-02-29 23:59:59.999",
            "2021-02-29",
            "1969-12-31 23:59:59",
            "x",
            None,
            "2020-1-2",
            "9999-12-31 00:00:00",
        ],
    ),
    "js": (
        "STRING",
        [
            '{"a":1,"b":[1,2,{"c":"x"}]}',
            '{"a":"é","n":null}',
            "[]",
            "no json",
            '"text"',
            None,
            '{"a":{"b":true},"b":1.50}',
            "[1, 2.5, null]",
        ],
    ),
    "url": (
        "STRING",
        ["http://user@example.org:80/p/a?x=1&y=2#ref", "https://a.b/", "no url", "a+b%20c", "%zz", None, "", "ä b&c"],
    ),
    "bin": ("BYTES", [b"", b"abc", b"\x00\xff", "ä".encode(), b" ", None, b"0", b"abcabc"]),
    "dt": (
        "DATE",
        [
            datetime.date(1970, 1, 1),
            datetime.date(2020, 2, 29),
            datetime.date(1969, 12, 31),
            datetime.date(9990, 12, 31),
            datetime.date(2000, 1, 31),
            None,
            datetime.date(2019, 12, 30),
            datetime.date(2021, 3, 14),
        ],
    ),
    "tm": (
        "TIME(0)",
        [
            datetime.time(0),
            datetime.time(23, 59, 59),
            datetime.time(12, 30),
            datetime.time(1, 2, 3),
            datetime.time(10),
            None,
            datetime.time(6, 7, 8),
            datetime.time(0, 0, 1),
        ],
    ),
    "ts": (
        "TIMESTAMP(3)",
        [
            DT(1970, 1, 1),
            DT(2020, 2, 29, 23, 59, 59, 999000),
            DT(1969, 12, 31, 23, 59, 59, 999000),
            DT(2021, 3, 14, 2, 30),
            DT(2021, 11, 7, 1, 30),
            None,
            DT(1900, 3, 1, 12, 30, 45),
            DT(2024, 12, 31, 12, 0, 0, 1000),
        ],
    ),
    "t2": (
        "TIMESTAMP(3)",
        [
            DT(1970, 1, 31),
            DT(2021, 2, 28, 23, 59, 59, 999000),
            DT(1970, 1, 1),
            DT(2021, 3, 15),
            DT(2020, 11, 7),
            DT(2020, 1, 1),
            None,
            DT(2023, 1, 1),
        ],
    ),
    "z": (
        "TIMESTAMP_LTZ(3)",
        [
            DT(1970, 1, 1, tzinfo=UTC),
            DT(2020, 2, 29, 23, 59, 59, 999000, UTC),
            DT(1969, 12, 31, 23, 59, 59, 999000, UTC),
            DT(2021, 3, 14, 7, 30, tzinfo=UTC),
            DT(2021, 11, 7, 5, 30, tzinfo=UTC),
            None,
            DT(1950, 6, 1, tzinfo=UTC),
            DT(2021, 11, 7, 6, 30, tzinfo=UTC),
        ],
    ),
    "a": ("ARRAY<INT>", [[], [1, 2, 3], [None, 2, 2], [7], [3, 1, 2, 1], None, [None], [-1, 0, 5]]),
    "a2": ("ARRAY<INT>", [[1], [2, 3], [2, None], [8], [], [1], None, [5, 0]]),
    "sa": ("ARRAY<STRING>", [[], ["a", "b"], ["x", None, "z"], ["ß"], [""], None, [None], ["a", "a"]]),
    "mp": (
        "MAP<STRING, INT>",
        [[], [("a", 1)], [("a", None), ("b", 2)], [("ß", 3)], [("", 0)], None, [("b", 5), ("a", 6)], [("c", 7)]],
    ),
    "r": (
        "ROW<x INT, y STRING>",
        [
            {"x": 1, "y": "a"},
            {"x": None, "y": "b"},
            {"x": 3, "y": None},
            {"x": 4, "y": ""},
            {"x": 5, "y": "ß"},
            None,
            {"x": None, "y": None},
            {"x": 8, "y": "h"},
        ],
    ),
}
ROWS = 8


def type_of(column: str) -> LogicalType:
    return parse_type(COLUMNS[column][0])


def array_of(column: str) -> pa.Array:
    kind, values = COLUMNS[column]
    return pa.array(values, to_arrow(parse_type(kind)))


def table() -> pa.Table:
    return pa.table({name: array_of(name) for name in COLUMNS})


def canonical(value: Any, kind: LogicalType) -> Any:
    """A value as JSON keeps it, so that those of Flink, Arrow and Spark compare."""
    if value is None or isinstance(value, bool | str):
        return value
    root = kind.root
    if root in (TypeRoot.FLOAT, TypeRoot.DOUBLE):
        return repr(float(value))
    if root is TypeRoot.DECIMAL:
        return format(Decimal(value), "f")
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, datetime.datetime):
        plain = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return plain.isoformat(timespec="microseconds")
    if isinstance(value, datetime.time):
        return value.isoformat(timespec="milliseconds")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(microseconds=1)
    if root is TypeRoot.ARRAY:
        return [canonical(each, kind.element) for each in value]
    if root in (TypeRoot.MAP, TypeRoot.MULTISET):
        key, item = (kind.key, kind.value) if root is TypeRoot.MAP else (kind.element, parse_type("INT"))
        pairs = value.items() if isinstance(value, dict) else value
        return sorted(([canonical(one, key), canonical(other, item)] for one, other in pairs), key=repr)
    if root is TypeRoot.ROW:
        parts = value.values() if isinstance(value, dict) else value
        return [canonical(each, field.type) for each, field in zip(parts, kind.fields, strict=True)]
    return value


def literal(value: Any, kind: LogicalType) -> str:
    """A value as Flink's SQL."""
    text = kind.with_nullable(True).sql().replace("`", "")
    if value is None:
        return f"CAST(NULL AS {text})"
    root = kind.root
    if root is TypeRoot.BOOLEAN:
        return "TRUE" if value else "FALSE"
    if root is TypeRoot.ARRAY:
        if not value:
            return (
                f"ARRAY_REMOVE(CAST(ARRAY[{literal_of_any(kind.element)}] AS {text}), {literal_of_any(kind.element)})"
            )
        return f"CAST(ARRAY[{', '.join(literal(each, kind.element) for each in value)}] AS {text})"
    if root is TypeRoot.MAP:
        if not value:
            return f"CAST(STR_TO_MAP('') AS {text})"
        pairs = (f"{literal(one, kind.key)}, {literal(other, kind.value)}" for one, other in value)
        return f"CAST(MAP[{', '.join(pairs)}] AS {text})"
    if root is TypeRoot.ROW:
        parts = (literal(value[each.name], each.type) for each in kind.fields)
        return f"CAST(ROW({', '.join(parts)}) AS {text})"
    if isinstance(value, bytes):
        return f"CAST(X'{value.hex()}' AS {text})"
    if root in (TypeRoot.FLOAT, TypeRoot.DOUBLE):
        word = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))
        return f"CAST('{word}' AS {text})"
    if root is TypeRoot.TIMESTAMP_LTZ:
        return f"TO_TIMESTAMP_LTZ({round(value.timestamp() * 1000)}, 3)"
    if root is TypeRoot.TIMESTAMP:
        return f"CAST('{value.isoformat(sep=' ', timespec='milliseconds')}' AS {text})"
    quoted = str(value).replace("'", "''")
    return f"CAST('{quoted}' AS {text})"


def literal_of_any(kind: LogicalType) -> str:
    return "CAST(1 AS INT)" if kind.root is TypeRoot.INTEGER else "CAST('x' AS STRING)"
