"""What the columns of a table of PostgreSQL refuse, from its catalogue."""

from __future__ import annotations

from typing import Any, Final

from headwater.datastream.connectors.jdbc.limits import ColumnLimits

_BITS: Final = {"int2": 16, "int4": 32, "int8": 64}
_LOOKED_UP: Final = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), y.typname, a.atttypmod,
  a.attnotnull AND c.relkind IN ('r', 'p')
    AND NOT EXISTS (SELECT FROM pg_rewrite r WHERE r.ev_class = c.oid)
    AND NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgtype & 7 = 7
      AND (t.tgrelid = c.oid OR t.tgrelid IN (SELECT relid FROM pg_partition_tree(c.oid))))
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type y ON y.oid = a.atttypid
WHERE c.oid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped
"""
"""A rule, or a trigger before the row, may fill in what is NULL. Types convert before it: their limits hold anyway."""


def column_limits(connection: Any, table: str) -> list[ColumnLimits]:
    return [_limits(*row) for row in connection.execute(_LOOKED_UP, (table,)).fetchall()]


def _limits(name: str, declared: str, kind: str, modifier: int, not_null: bool) -> ColumnLimits:
    shown = f"{declared} NOT NULL" if not_null else declared
    if kind in ("varchar", "bpchar") and modifier >= 4:
        return ColumnLimits(name, shown, not_null, characters=modifier - 4)
    if kind == "numeric" and modifier >= 4:
        precision, scale = (modifier - 4) >> 16 & 0xFFFF, ((modifier - 4) & 0x7FF ^ 0x400) - 0x400
        return ColumnLimits(name, shown, not_null, digits=precision - scale, scale=scale)
    return ColumnLimits(name, shown, not_null, bits=_BITS.get(kind))
