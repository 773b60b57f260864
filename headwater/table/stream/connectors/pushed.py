"""Conditions that a source can check itself. It may leave out only rows for which they do not hold: the filter behind
it checks them again, so a condition that is not understood is left to it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from headwater.datastream.connectors.jdbc.database import Database
from headwater.table.functions.frame import Frame
from headwater.table.plan.expressions import Column, ColumnRef, FunctionCall, Literal, Rex
from headwater.table.stream.changes import schema_of
from headwater.table.stream.evaluate import compiled, evaluated
from headwater.table.types import logical as t

_PLAIN = frozenset(
    (
        "=", "<>", "<", ">", "<=", ">=", "AND", "OR", "NOT", "IN", "NOT IN", "BETWEEN", "NOT BETWEEN", "LIKE",
        "NOT LIKE", "IS NULL", "IS NOT NULL", "CAST", "+", "-", "MOD", "SUBSTRING", "CONCAT", "UPPER", "LOWER",
    )
)  # fmt: skip
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


def columns_in(rex: Rex) -> dict[int, Column]:
    return {each.column.id: each.column for each in rex.walk() if isinstance(each, ColumnRef)}


def sql_condition(rex: Rex, database: Database) -> str | None:
    """A condition as the database has it; None if it might see it in another way.

    Whole numbers and dates are compared; texts are only equal, because their order is the database's own. Where it
    takes more texts for equal (a collation that ignores case), it gives too many rows, never too few.
    """
    if not isinstance(rex, FunctionCall):
        return None
    name, arguments = rex.name, rex.arguments
    if name == "AND":
        known = [each for part in arguments if (each := sql_condition(part, database)) is not None]
        return f"({' AND '.join(known)})" if known else None
    if name == "OR":
        parts = [sql_condition(each, database) for each in arguments]
        return None if None in parts else f"({' OR '.join(map(str, parts))})"
    if isinstance(arguments[0], Literal) and name in _MIRRORED:
        name, arguments = _MIRRORED[name], arguments[::-1]
    if not arguments or not isinstance(arguments[0], ColumnRef):
        return None
    column = arguments[0].column
    sql = database.quoted(column.name)
    if name in ("IS NULL", "IS NOT NULL"):
        return f"{sql} {name}"
    equal = name in ("=", "IN")
    values = [_literal(column.type, each, equal) for each in arguments[1:]]
    if None in values or not (equal or name in (*_MIRRORED, "BETWEEN")):
        return None
    if isinstance(column.type, t.VarCharType):
        sql = database.as_text(sql)
    if name == "BETWEEN":
        return f"{sql} BETWEEN {values[0]} AND {values[1]}"
    return f"{sql} IN ({', '.join(map(str, values))})" if name == "IN" else f"{sql} {name} {values[0]}"


def _literal(type_: t.LogicalType, rex: Rex, equal: bool) -> str | None:
    value = rex.value if isinstance(rex, Literal) else None
    if t.is_integer(type_) and type(value) is int:
        return str(value)
    if isinstance(type_, t.VarCharType) and isinstance(value, str) and equal:
        plain = value.isprintable() and not set(value) & set("\\?%")
        return "'" + value.replace("'", "''") + "'" if plain else None
    if isinstance(type_, t.DateType) and type(value) is datetime.date:
        return f"'{value.isoformat()}'"
    return None


@dataclass(frozen=True)
class Wanted:
    """Conditions over some columns that have one value for many rows: partitions of files."""

    conditions: tuple[Rex, ...]
    columns: tuple[Column, ...]
    zone: str

    @staticmethod
    def of(filters: Sequence[Rex], names: Sequence[str], zone: str) -> Wanted | None:
        """Those of `filters` that are about columns of these names alone, by functions that know no time or place."""
        chosen = []
        columns: dict[int, Column] = {}
        for each in filters:
            found = columns_in(each)
            plain = all(not isinstance(call, FunctionCall) or call.name in _PLAIN for call in each.walk())
            if found and plain and all(column.name in names for column in found.values()):
                chosen.append(each)
                columns |= found
        return Wanted(tuple(chosen), tuple(columns.values()), zone) if chosen else None

    def holds(self, values: dict[str, pa.Scalar]) -> bool:
        """Whether rows with these values may meet the conditions."""
        schema = schema_of(self.columns)
        arrays = [pa.array([values[c.name].as_py()], f.type) for c, f in zip(self.columns, schema, strict=True)]
        rows = pa.RecordBatch.from_arrays(arrays, schema=schema)
        frame = Frame(1, self.zone, 0)
        return all(evaluated(compiled(each, self.columns), rows, frame)[0].as_py() for each in self.conditions)
