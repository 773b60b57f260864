"""Windowing table functions as Spark SQL. Time is counted in milliseconds since 1970 in the session's zone."""

from __future__ import annotations

from headwater.table.batch.spark_expressions import column_name
from headwater.table.plan.nodes import WindowTable
from headwater.table.types.logical import LocalZonedTimestampType

_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"


def window_table(node: WindowTable, source: str) -> str:
    """The input's rows with their windows. Rows without a time have no window, as in Flink."""
    time = column_name(node.time)
    local = f"CAST({time} AS TIMESTAMP_NTZ)" if isinstance(node.time.type, LocalZonedTimestampType) else time
    elapsed = f"TIMESTAMPDIFF(MICROSECOND, {_EPOCH}, {local})"
    counted = f"SELECT *, {elapsed} AS w_us FROM ({source}) WHERE {time} IS NOT NULL"
    kept = f"SELECT *, (w_us - PMOD(w_us, 1000L)) DIV 1000L AS w_ms FROM ({counted})"
    match node.kind:
        case "TUMBLE":
            rows = f"SELECT *, {_floor('w_ms', node.size_ms, node.offset_ms)} AS w_s FROM ({kept})"
            bounded = f"SELECT *, w_s + {node.size_ms}L AS w_e FROM ({rows})"
        case "HOP":
            last = _floor("w_ms", node.step_ms, node.offset_ms)
            behind = (-(-node.size_ms // node.step_ms) - 1) * node.step_ms
            starts = f"SEQUENCE({last} - {behind}L, {last}, {node.step_ms}L)"
            rows = f"SELECT *, EXPLODE({starts}) AS w_s FROM ({kept})"
            if node.size_ms % node.step_ms:  # then some of the windows are over before the row
                rows = f"SELECT * FROM ({rows}) WHERE w_s + {node.size_ms}L > w_ms"
            bounded = f"SELECT *, w_s + {node.size_ms}L AS w_e FROM ({rows})"
        case "CUMULATE":
            rows = f"SELECT *, {_floor('w_ms', node.size_ms, node.offset_ms)} AS w_s FROM ({kept})"
            first = f"w_s + ((w_ms - w_s) DIV {node.step_ms}L + 1L) * {node.step_ms}L"
            ends = f"SEQUENCE({first}, w_s + {node.size_ms}L, {node.step_ms}L)"
            bounded = f"SELECT *, EXPLODE({ends}) AS w_e FROM ({rows})"
        case _:
            bounded = _session(node, kept)
    start, end, moment = (column_name(column) for column in node.added)
    last_moment = _timestamp("w_e - 1L")
    if isinstance(node.added[2].type, LocalZonedTimestampType):
        last_moment = f"CAST({last_moment} AS TIMESTAMP)"
    columns = ", ".join(column_name(column) for column in node.input.columns)
    added = f"{_timestamp('w_s')} AS {start}, {_timestamp('w_e')} AS {end}, {last_moment} AS {moment}"
    return f"SELECT {', '.join(part for part in (columns, added) if part)} FROM ({bounded})"


def _floor(time: str, size_ms: int, offset_ms: int) -> str:
    """The start of the window of that size that has `time`, before 1970 too."""
    shifted = f"{time} - {offset_ms}L" if offset_ms else time
    return f"({time} - PMOD({shifted}, {size_ms}L))"


def _timestamp(milliseconds: str) -> str:
    return f"TIMESTAMPADD(MICROSECOND, ({milliseconds}) * 1000L, {_EPOCH})"


def _session(node: WindowTable, kept: str) -> str:
    """A row begins a session if the one before it is more than the gap away: windows that touch are one."""
    keys = ", ".join(column_name(column) for column in node.partition_by)
    partition = f"PARTITION BY {keys} " if keys else ""
    gap = f"{node.size_ms}L"
    before = f"LAG(w_ms) OVER ({partition}ORDER BY w_ms)"
    marked = f"SELECT *, CASE WHEN w_ms - {before} <= {gap} THEN 0 ELSE 1 END AS w_new FROM ({kept})"
    total = f"SUM(w_new) OVER ({partition}ORDER BY w_ms RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    numbered = f"SELECT *, {total} AS w_n FROM ({marked})"
    group = f"PARTITION BY {keys}, w_n" if keys else "PARTITION BY w_n"
    return f"SELECT *, MIN(w_ms) OVER ({group}) AS w_s, MAX(w_ms) OVER ({group}) + {gap} AS w_e FROM ({numbered})"
