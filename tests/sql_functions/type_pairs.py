"""Pairs of types, and what Flink makes of them: whether one casts to the other, and what type a result has."""

from __future__ import annotations

import json
from pathlib import Path

RECORDED_TYPES = Path(__file__).parent / "recorded_types.json"

TYPES = (
    "CHAR(3)",
    "VARCHAR(5)",
    "STRING",
    "BOOLEAN",
    "BINARY(3)",
    "VARBINARY(5)",
    "BYTES",
    "DECIMAL(10, 2)",
    "DECIMAL(38, 18)",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DATE",
    "TIME(0)",
    "TIMESTAMP(3)",
    "TIMESTAMP(6)",
    "TIMESTAMP_LTZ(3)",
    "INTERVAL YEAR TO MONTH",
    "INTERVAL DAY TO SECOND",
    "ARRAY<INT>",
    "MAP<STRING, INT>",
    "ROW<a INT>",
    "MULTISET<INT>",
)

EXPRESSIONS = {
    "CAST": "CAST(x AS {target})",
    "COALESCE": "COALESCE(x, y)",
    **{sign: f"x {sign} y" for sign in ("+", "-", "*", "/", "%")},
}

Key = tuple[str, str, str]
"""(expression, one type, the other)"""


def queries() -> dict[str, Key]:
    """{query: key} for all pairs. The columns are nullable."""
    found: dict[str, Key] = {}
    for name, expression in EXPRESSIONS.items():
        for one in TYPES:
            for other in TYPES:
                columns = f"CAST(NULL AS {one}) AS x, CAST(NULL AS {other}) AS y"
                source = f"(SELECT {columns} FROM (VALUES (1)) AS V(z)) AS S"
                found[f"SELECT {expression.format(target=other)} FROM {source}"] = (name, one, other)
    return found


def write(found: dict[Key, str | None]) -> None:
    nested: dict[str, dict[str, dict[str, str | None]]] = {}
    for (name, one, other), kind in found.items():
        nested.setdefault(name, {}).setdefault(one, {})[other] = kind
    parts = []
    for name, rows in nested.items():
        lines = ",\n".join(f"  {json.dumps(one)}: {json.dumps(row)}" for one, row in rows.items())
        parts.append(f"{json.dumps(name)}: {{\n{lines}\n}}")
    RECORDED_TYPES.write_text("{\n" + ",\n".join(parts) + "\n}\n", "utf-8")


def read() -> dict[Key, str | None]:
    nested = json.loads(RECORDED_TYPES.read_text("utf-8"))
    return {
        (name, one, other): kind
        for name, rows in nested.items()
        for one, row in rows.items()
        for other, kind in row.items()
    }
