"""Windows, and what else waits for a watermark. Here, rows only come, and some are late."""

from tests.unit.table.stream.oracle import Query
from tests.unit.table.stream.random_sql.expressions import dialect
from tests.unit.table.stream.random_sql.timed import in_time, window

_T, _U = (window("TUMBLE", table, waits=True) for table in ("t", "u"))
_HOP, _HOP_U = (window("HOP", table, waits=True) for table in ("t", "u"))
_GROWING = window("CUMULATE", "t", waits=True)
_OPEN = window("TUMBLE", "t", waits=False)
_BOUNDS = "window_start, window_end"
_SAME = "a.window_start = b.window_start AND a.window_end = b.window_end"
_OVER, _OVER_U = (in_time(table, waits=True) for table in ("t", "u"))
_PUNCTUAL, _PUNCTUAL_U = (in_time(table, waits=False) for table in ("t", "u"))
_RANGE = "RANGE BETWEEN INTERVAL '3' SECOND PRECEDING AND CURRENT ROW"


def _timed(*texts: str) -> list[Query | str]:
    return [Query(dialect(text, duck=False), dialect(text, duck=True)) for text in texts]


def _ranked(function: str, rows: str, order: str, limit: str, keys: str = _BOUNDS) -> str:
    ranked = f"SELECT *, {function}() OVER (PARTITION BY {keys} ORDER BY {order}) AS r FROM ({rows})"
    return f"SELECT * FROM ({ranked}) WHERE r {limit}"


_COUNTS = f"SELECT window_start, window_end, k, COUNT(*) AS n FROM {_T} GROUP BY window_start, window_end, k"

EVENT_TIME: dict[str, list[Query | str]] = {
    "windows": _timed(
        f"SELECT {_BOUNDS}, COUNT(*), SUM(v) FROM {_T} GROUP BY {_BOUNDS}",
        f"SELECT k, window_start, COUNT(DISTINCT id), MAX(v) FROM {_T} GROUP BY k, {_BOUNDS}",
        "SELECT ⟦TUMBLE_START(ts, INTERVAL '5' SECOND)¦window_start⟧, k, MIN(v) FROM"
        f" ⟦t¦{_T}⟧ GROUP BY k, ⟦TUMBLE(ts, INTERVAL '5' SECOND)¦window_start⟧",
        f"SELECT window_end, MAX(n) FROM ({_COUNTS}) GROUP BY {_BOUNDS}",
        f"SELECT {_BOUNDS}, SUM(d), MIN(f), MAX(b) FROM {_T} WHERE v > 0 GROUP BY {_BOUNDS}",
        f"SELECT window_end, k, COUNT(*) FILTER (WHERE b), SUM(DISTINCT v) FROM {_T} GROUP BY {_BOUNDS}, k",
        f"SELECT k, COUNT(*) FROM {_T} GROUP BY {_BOUNDS}, k HAVING COUNT(*) > 1",
        f"SELECT v + 1, window_start, COUNT(*) FROM {_T} GROUP BY v + 1, {_BOUNDS}",
        f"SELECT {_BOUNDS}, k, b, COUNT(*) FROM {_T} GROUP BY {_BOUNDS}, GROUPING SETS ((k), (b), ())",
        f"SELECT DISTINCT {_BOUNDS}, k FROM {_T} GROUP BY {_BOUNDS}, k",
    ),
    "hopping and growing windows": _timed(
        f"SELECT window_end, k, COUNT(*) FROM {_HOP} GROUP BY {_BOUNDS}, k",
        f"SELECT {_BOUNDS}, SUM(v) FROM {_GROWING} GROUP BY {_BOUNDS}",
        f"SELECT ⟦HOP_END(ts, INTERVAL '2' SECOND, INTERVAL '6' SECOND)¦window_end⟧, COUNT(DISTINCT k) FROM ⟦t¦{_HOP}⟧"
        " GROUP BY ⟦HOP(ts, INTERVAL '2' SECOND, INTERVAL '6' SECOND)¦window_start, window_end⟧",
        f"SELECT {_BOUNDS}, MIN(v), MAX(k), SUM(DISTINCT v) FROM {_HOP} GROUP BY {_BOUNDS}",
        f"SELECT {_BOUNDS}, id, COUNT(DISTINCT v), MIN(d) FROM {_GROWING} GROUP BY {_BOUNDS}, id",
        f"SELECT window_end, SUM(v) FILTER (WHERE b) FROM {_HOP} WHERE k IS NOT NULL GROUP BY {_BOUNDS} HAVING"
        " COUNT(*) > 1",
        f"SELECT b, window_end, ⟦AVG(v)¦CAST(trunc(AVG(v)) AS BIGINT)⟧ FROM {_GROWING} GROUP BY b, {_BOUNDS}",
    ),
    "joined and ranked windows": _timed(
        _ranked("RANK", _COUNTS, "n DESC", "<= 1"),
        _ranked("DENSE_RANK", _COUNTS, "n", "<= 2"),
        _ranked("ROW_NUMBER", f"SELECT window_start, window_end, id, v, k FROM {_T}", "v DESC, id, k", "<= 2"),
        _ranked("ROW_NUMBER", f"SELECT window_start, window_end, id, v FROM {_HOP}", "v, id", "= 1"),
        _ranked("ROW_NUMBER", f"SELECT window_start, window_end, id, v, k FROM {_T}", "v, id", "<= 1", f"{_BOUNDS}, k"),
        f"SELECT a.id, b.id, a.window_start FROM {_T} a JOIN {_U} b ON {_SAME} AND a.k = b.k",
        f"SELECT a.id, b.id FROM {_T} a LEFT JOIN {_U} b ON {_SAME} AND a.id = b.id",
        f"SELECT a.id, b.id FROM {_T} a RIGHT JOIN {_U} b ON {_SAME} AND a.v < b.v",
        f"SELECT a.id, b.id, b.window_end FROM {_T} a FULL JOIN {_U} b ON {_SAME} AND a.k = b.k AND a.v <> b.v",
        f"SELECT a.id, b.id FROM {_HOP} a JOIN {_HOP_U} b ON {_SAME} AND a.k IS NOT DISTINCT FROM b.k",
        f"SELECT a.id, a.window_start FROM {_T} a WHERE EXISTS (SELECT 1 FROM {_U} b WHERE {_SAME} AND a.k = b.k)",
        f"SELECT a.id, a.window_start FROM {_T} a WHERE NOT EXISTS (SELECT 1 FROM {_U} b WHERE {_SAME} AND a.k = b.k)",
        f"SELECT a.k, a.n, b.n FROM ({_COUNTS}) a JOIN ({_COUNTS.replace(_T, _U)}) b ON {_SAME} AND a.k = b.k",
        f"SELECT k, n, m FROM ({_COUNTS}) a JOIN (SELECT {_BOUNDS}, MAX(n) AS m FROM ({_COUNTS}) GROUP BY {_BOUNDS}) b"
        f" ON {_SAME} AND n = m",
    ),
    "windows and the rest": _timed(
        f"SELECT a.window_start, b.window_start, COUNT(*), SUM(b.v) FROM {_T} a FULL JOIN {_U} b ON {_SAME} AND a.k"
        " = b.k"
        " GROUP BY a.window_start, a.window_end, b.window_start",
        f"SELECT a.window_start, a.window_end, COUNT(*), SUM(b.v) FROM {_T} a FULL JOIN {_U} b ON {_SAME} AND a.k = b.k"
        " GROUP BY a.window_start, a.window_end",
        f"SELECT b.window_start, b.window_end, COUNT(*), SUM(b.v) FROM {_T} a LEFT JOIN {_U} b ON {_SAME} AND a.k = b.k"
        " GROUP BY b.window_start, b.window_end",
        f"SELECT k, SUM(n), MAX(n) FROM ({_COUNTS}) GROUP BY k",
        f"SELECT x.k, x.n, u.id FROM ({_COUNTS}) x JOIN u ON x.k = u.k",
        f"SELECT u.id, x.n FROM u LEFT JOIN ({_COUNTS}) x ON x.n = u.id",
        f"SELECT k, n FROM ({_COUNTS}) WHERE n IN (SELECT id FROM u)",
        f"SELECT k, n FROM ({_COUNTS}) UNION SELECT k, v FROM u",
        f"SELECT id, window_start, window_end FROM {_OPEN} WHERE v > 1",
        f"SELECT window_start, COUNT(*), SUM(v) FROM {_OPEN} GROUP BY window_start",
        f"SELECT k, n FROM ({_COUNTS}) ORDER BY n DESC, k, window_start LIMIT 3",
        f"SELECT k, n, SUM(n) OVER (PARTITION BY k) FROM ({_COUNTS})",
    ),
    "event time": _timed(
        f"SELECT id, v, SUM(v) OVER (PARTITION BY k ORDER BY ts) FROM {_OVER}",
        f"SELECT id, COUNT(*) OVER (PARTITION BY k ORDER BY ts {_RANGE}) FROM {_OVER}",
        f"SELECT id, ts FROM {_OVER} {'⟦ORDER BY ts¦⟧'}",
        f"SELECT t.id, u.id FROM {_PUNCTUAL} t JOIN {_PUNCTUAL_U} u ON t.k = u.k AND t.ts BETWEEN u.ts - INTERVAL"
        " '2' SECOND"
        " AND u.ts + INTERVAL '1' SECOND",
        f"SELECT id, MIN(v) OVER (ORDER BY ts), MAX(d) OVER (ORDER BY ts) FROM {_OVER_U}",
        f"SELECT id, SUM(f) OVER (PARTITION BY b, k ORDER BY ts {_RANGE}) FROM {_OVER} WHERE v > 0",
        f"SELECT k, s, COUNT(*) FROM (SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ts) AS s FROM {_OVER}) GROUP"
        " BY k, s",
        f"SELECT t.id, u.id FROM {_PUNCTUAL} t JOIN {_PUNCTUAL_U} u ON t.id = u.id AND t.v < u.v AND t.ts >= u.ts AND"
        " t.ts < u.ts + INTERVAL '5' SECOND",
        f"SELECT t.id, u.id FROM {_PUNCTUAL} t, {_PUNCTUAL_U} u WHERE t.k = u.k AND u.ts BETWEEN t.ts AND"
        " t.ts + INTERVAL '4' SECOND AND t.b",
        f"SELECT t.k, COUNT(*), MAX(u.v) FROM {_PUNCTUAL} t JOIN {_PUNCTUAL_U} u ON t.ts BETWEEN u.ts - INTERVAL"
        " '1' SECOND AND"
        " u.ts + INTERVAL '1' SECOND GROUP BY t.k",
    ),
    "all rows": [
        "SELECT k, COUNT(*), SUM(v), MIN(v), MAX(v) FROM t GROUP BY k",
        "SELECT t.id, u.v FROM t JOIN u ON t.id = u.id",
        "SELECT t.id, u.v FROM t LEFT JOIN u ON t.id = u.id",
        "SELECT k, id FROM (SELECT k, id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id) AS rn FROM"
        " (SELECT DISTINCT k, id FROM t)) WHERE rn = 1",
        "SELECT DISTINCT k FROM t",
        "SELECT id, v FROM t WHERE v > 1 UNION ALL SELECT id, v FROM u WHERE v < 1",
        "SELECT id, k, v FROM (SELECT id, k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS r FROM"
        " (SELECT id, k, v FROM t)) WHERE r <= 2",
        "SELECT id, k, v, b FROM t ORDER BY v DESC, id, k, b LIMIT 3",
        "SELECT k, COUNT(DISTINCT v), SUM(DISTINCT id) FROM t GROUP BY k",
        "SELECT t.id, u.id FROM t FULL JOIN u ON t.id = u.id AND t.v < u.v",
        "SELECT id FROM t WHERE k NOT IN (SELECT k FROM u WHERE v > 3)",
        "SELECT k, MAX(ts), MIN(ts) FROM t GROUP BY k",
    ],
}  # fmt: skip
