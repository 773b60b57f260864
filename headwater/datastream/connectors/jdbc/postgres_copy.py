"""How PostgreSQL takes rows that wait as COPY's text: copied, copied beside the table and merged, or row by row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from headwater.datastream.connectors.jdbc.statement import CopyPlan

_BEFORE_OR_AFTER_ROW_CHANGES: Final = "t.tgtype & 1 = 1 AND t.tgtype & 20 <> 0"
"""Triggers for each row of an INSERT or UPDATE (pg_trigger.h)."""
_LOOKED_UP: Final = f"""
SELECT c.relkind, row_security_active(c.oid),
  EXISTS (SELECT FROM pg_rewrite r WHERE r.ev_class = c.oid AND r.ev_type = '3' AND r.ev_enabled <> 'D'),
  EXISTS (SELECT FROM pg_trigger t WHERE NOT t.tgisinternal AND t.tgenabled <> 'D' AND {_BEFORE_OR_AFTER_ROW_CHANGES}
    AND (t.tgrelid = c.oid OR t.tgrelid IN (SELECT relid FROM pg_partition_tree(c.oid)))),
  has_database_privilege(current_database(), 'TEMPORARY'),
  (SELECT coalesce(bool_and(has_column_privilege(c.oid, a.attnum, 'SELECT')), false)
    FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = ANY(%(columns)s::text[])),
  (SELECT coalesce(bool_or(NOT a.attnotnull), true)
    FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = ANY(%(keys)s::text[])),
  EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique
    AND coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false)
    AND (SELECT array_agg(a.attname::text ORDER BY a.attname COLLATE "C") FROM pg_attribute a
      WHERE a.attrelid = c.oid AND a.attnum = ANY(i.indkey[0:i.indnkeyatts - 1])) = %(keys)s::text[])
FROM pg_class c WHERE c.oid = %(table)s::regclass
"""


@dataclass(frozen=True)
class Target:
    """What decides how the rows of a plan can come. Read anew for each commit: a table changes while a job runs."""

    kind: str
    row_security: bool
    rules: bool
    row_triggers: bool
    may_make_temporary_tables: bool
    may_select: bool
    null_keys: bool
    """The key may hold NULL."""
    nulls_conflict: bool
    """A unique index of the key takes NULLs for equal (NULLS NOT DISTINCT)."""

    @staticmethod
    def of(connection: Any, plan: CopyPlan) -> Target:
        values = {
            "table": plan.table,
            "columns": [stored_name(each) for each in plan.columns],
            "keys": sorted(stored_name(each) for each in plan.last_of),
        }
        return Target(*connection.execute(_LOOKED_UP, values).fetchone())

    def why_rows(self, plan: CopyPlan) -> str:
        """Why COPY would fail, or do something else than the statement for each row; "" if it does the same."""
        if self.kind not in ("r", "p"):
            return "it is no plain table"
        if self.rules:
            return "it has rules, which COPY skips"
        if not plan.conflict:
            return "it has row-level security, for which PostgreSQL has no COPY" if self.row_security else ""
        if not self.may_make_temporary_tables:
            return "the user has no right TEMPORARY in the database, which a copied upsert needs"
        if not self.may_select:
            return "the user may not SELECT all of the columns, which a copied upsert needs"
        if plan.last_of and self.row_triggers:
            # They see each row of a key if they come one by one, and may change the key.
            return "it has triggers for each row"
        return ""


def stored_name(name: str) -> str:
    """A name of a statement as the catalogue has it."""
    quoted = len(name) > 1 and name[0] == name[-1] == '"'
    return name[1:-1].replace('""', '"') if quoted else name.lower()


def copy_rows(connection: Any, plan: CopyPlan, target: Target, blocks: Iterable[bytes]) -> None:
    """Copy blocks of COPY's text. `target.why_rows` must have had no objection."""
    columns = ", ".join(plan.columns)
    cursor = connection.cursor()
    if not plan.conflict:
        copy_blocks(cursor, f"COPY {plan.table} ({columns}) FROM STDIN", blocks)
        return
    # The columns of the temporary table have the types of the real ones, and no constraints.
    cursor.execute("DROP TABLE IF EXISTS pg_temp.headwater_copied")
    cursor.execute(
        f"CREATE TEMPORARY TABLE headwater_copied ON COMMIT DROP AS SELECT {columns} FROM {plan.table} WITH NO DATA"
    )
    cursor.execute("ALTER TABLE headwater_copied ADD headwater_row bigint GENERATED ALWAYS AS IDENTITY")
    copy_blocks(cursor, f"COPY pg_temp.headwater_copied ({columns}) FROM STDIN", blocks)
    cursor.execute(f"INSERT INTO {plan.table} ({columns}) {_merged(plan, target)} {plan.conflict}")


def _merged(plan: CopyPlan, target: Target) -> str:
    columns = ", ".join(plan.columns)
    if not plan.last_of:
        return f"SELECT {columns} FROM pg_temp.headwater_copied ORDER BY headwater_row"
    keys = ", ".join(plan.last_of)
    if target.null_keys and not target.nulls_conflict:
        # A row whose key holds NULL conflicts with none: its own number tells it apart.
        has_null = " OR ".join(f"{key} IS NULL" for key in plan.last_of)
        keys += f", (CASE WHEN {has_null} THEN headwater_row END)"
    return f"SELECT DISTINCT ON ({keys}) {columns} FROM pg_temp.headwater_copied ORDER BY {keys}, headwater_row DESC"


def copy_blocks(cursor: Any, command: str, blocks: Iterable[bytes]) -> None:
    with cursor.copy(command) as copy:
        for block in blocks:
            copy.write(block)
