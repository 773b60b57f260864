"""Top-N, LIMIT and OVER."""

from tests.unit.table.stream.oracle import Query

_RANKED = "SELECT *, {0}() OVER ({1}) AS r FROM (SELECT id, k, v, b FROM t)"


def _top(function: str, window: str, limit: str, columns: str = "id, k, v, b") -> str:
    return f"SELECT {columns} FROM ({_RANKED.format(function, window)}) WHERE {limit}"


_ALL = "v DESC, id, k, b"

RANKS: dict[str, list[Query | str]] = {
    "ranks": [
        "SELECT k, v, id FROM (SELECT *, RANK() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST) AS r FROM t) WHERE"
        " r <= 2",
        "SELECT k, v, id, r FROM (SELECT *, DENSE_RANK() OVER (PARTITION BY k ORDER BY id) AS r FROM t) WHERE r <= 3",
        "SELECT k, id, rn FROM (SELECT k, id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id) AS rn FROM"
        " (SELECT DISTINCT k, id FROM t)) WHERE rn <= 3",
        "SELECT k, id FROM (SELECT k, id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id DESC) AS rn FROM"
        " (SELECT DISTINCT k, id FROM t)) WHERE rn = 1",
        "SELECT k, id FROM (SELECT k, id, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id) AS rn FROM"
        " (SELECT DISTINCT k, id FROM t)) WHERE rn > 1 AND rn <= 3",
        "SELECT id, n FROM (SELECT id, n, ROW_NUMBER() OVER (ORDER BY n DESC, id) AS rn FROM"
        " (SELECT id, COUNT(*) AS n FROM t GROUP BY id)) WHERE rn <= 3",
        "SELECT DISTINCT id, k FROM t ORDER BY id, k NULLS FIRST LIMIT 4",
        "SELECT id, COUNT(*) AS n FROM t GROUP BY id ORDER BY n DESC, id LIMIT 3 OFFSET 1",
    ],
    "more ranks": [
        _top("ROW_NUMBER", f"PARTITION BY k ORDER BY {_ALL}", "r = 1"),
        _top("ROW_NUMBER", f"PARTITION BY k, b ORDER BY {_ALL}", "r <= 2", "id, k, v, b, r"),
        _top("ROW_NUMBER", f"ORDER BY {_ALL}", "r < 4"),
        _top("RANK", "ORDER BY v", "r = 1"),
        _top("RANK", "PARTITION BY b ORDER BY k NULLS LAST, v DESC", "r <= 3", "id, k, v, b, r"),
        _top("DENSE_RANK", "PARTITION BY b ORDER BY v DESC NULLS FIRST", "r <= 2"),
        _top("DENSE_RANK", "ORDER BY k", "r = 2", "id, k, v, b, r"),
        _top("RANK", "PARTITION BY k ORDER BY v", "r BETWEEN 2 AND 3", "id, k, r"),
        _top("ROW_NUMBER", f"PARTITION BY k ORDER BY {_ALL}", "r <= 3 AND v > 0"),
        _top("ROW_NUMBER", f"PARTITION BY k ORDER BY {_ALL}", "3 >= r AND b", "k, v"),
        "SELECT k, COUNT(*), MIN(v) FROM (" + _top("ROW_NUMBER", f"PARTITION BY k ORDER BY {_ALL}", "r <= 2") + ")"
        " GROUP BY k",
        "SELECT x.id, u.id FROM (" + _top("RANK", "PARTITION BY k ORDER BY v DESC", "r <= 1") + ") x LEFT JOIN u ON"
        " x.k = u.k",
        "SELECT k, n FROM (SELECT *, RANK() OVER (ORDER BY n DESC) AS r FROM (SELECT k, COUNT(*) AS n FROM t GROUP"
        " BY k)) WHERE r <= 2",
        "SELECT k, id, s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY s DESC, id) AS r FROM"
        " (SELECT k, id, SUM(v) AS s FROM t GROUP BY k, id)) WHERE r <= 2",
        "SELECT a, c FROM (SELECT *, RANK() OVER (PARTITION BY a ORDER BY c) AS r FROM"
        " (SELECT t.id AS a, u.id AS c FROM t LEFT JOIN u ON t.k = u.k)) WHERE r <= 1",
        "SELECT id, k FROM t QUALIFY RANK() OVER (PARTITION BY k ORDER BY id) <= 2",
        "SELECT id, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY v, k, b) AS r FROM ("
        + _top("ROW_NUMBER", f"PARTITION BY k ORDER BY {_ALL}", "r <= 2") + ")) WHERE r = 1",
    ],
    "limits": [
        "SELECT id, k, v, b FROM t ORDER BY v DESC, id, k, b LIMIT 3",
        "SELECT id, k, v, b FROM t ORDER BY v NULLS LAST, id DESC, k, b LIMIT 4 OFFSET 2",
        "SELECT k, SUM(v) AS s FROM t GROUP BY k ORDER BY s DESC, k LIMIT 2",
        "SELECT COUNT(*), SUM(v) FROM (SELECT v, id FROM t ORDER BY v, id LIMIT 5)",
        "SELECT id FROM t WHERE v IN (SELECT v FROM u ORDER BY v DESC LIMIT 2)",
        "SELECT x.id, u.k FROM (SELECT DISTINCT id FROM t ORDER BY id DESC LIMIT 2) x JOIN u ON x.id = u.id",
        "SELECT id, k FROM t UNION SELECT id, k FROM u ORDER BY id, k LIMIT 3",
        "SELECT d, f FROM t ORDER BY d DESC, f FETCH FIRST 2 ROWS ONLY",
    ],
    "over": [
        "SELECT id, v, SUM(v) OVER (PARTITION BY k) FROM t",
        "SELECT id, COUNT(*) OVER (PARTITION BY k ORDER BY id) FROM t",
        "SELECT id, k, RANK() OVER (PARTITION BY k ORDER BY id), MAX(v) OVER (PARTITION BY k ORDER BY id) FROM t",
        "SELECT k, id, LAG(id) OVER (PARTITION BY k ORDER BY id) FROM (SELECT DISTINCT k, id FROM t)",
        "SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM"
        " (SELECT DISTINCT id, k, v FROM t WHERE v = id)",
    ],
    "more over": [
        "SELECT id, COUNT(*) OVER (), SUM(v) OVER () FROM t",
        "SELECT id, MIN(v) OVER (PARTITION BY b ORDER BY k DESC), MAX(d) OVER (PARTITION BY b ORDER BY k DESC) FROM t",
        "SELECT id, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v, id) FROM (SELECT DISTINCT id, k, v FROM t)",
        "SELECT id, v, DENSE_RANK() OVER (ORDER BY v DESC NULLS LAST), RANK() OVER (ORDER BY v DESC NULLS LAST) FROM t",
        "SELECT id, LEAD(id, 2) OVER (ORDER BY id), LAG(id, 1, -1) OVER (ORDER BY id) FROM (SELECT DISTINCT id FROM t)",
        "SELECT k, FIRST_VALUE(id) OVER (PARTITION BY k ORDER BY id) FROM (SELECT DISTINCT id, k FROM t WHERE id >= 0)",
        "SELECT id, SUM(v) OVER (ORDER BY id RANGE BETWEEN 2 PRECEDING AND CURRENT ROW) FROM t WHERE id IS NOT NULL",
        "SELECT id, COUNT(v) OVER (ORDER BY id RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t WHERE id IS NOT NULL",
        "SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY id, v, b ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM"
        " (SELECT id, k, v, b FROM t)",
        "SELECT id, MAX(v) OVER (PARTITION BY k ORDER BY id, v, b ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED"
        " FOLLOWING) FROM"
        " (SELECT id, k, v, b FROM t)",
        "SELECT id, v - SUM(v) OVER (PARTITION BY k), v > COUNT(*) OVER (PARTITION BY b) FROM t",
        "SELECT k, SUM(v), RANK() OVER (ORDER BY SUM(v)) FROM t GROUP BY k",
        "SELECT s, COUNT(*) FROM (SELECT SUM(v) OVER (PARTITION BY k ORDER BY id) AS s FROM t) GROUP BY s",
        "SELECT id, n FROM (SELECT id, COUNT(*) OVER (PARTITION BY k) AS n FROM t) WHERE n > 2",
        "SELECT x.id, x.s, u.id FROM (SELECT id, k, SUM(v) OVER (PARTITION BY k) AS s FROM t) x JOIN u ON x.s = u.v",
        "SELECT c, e, COUNT(*) FROM (SELECT c, COUNT(*) OVER (PARTITION BY k) AS e FROM"
        " (SELECT k, v, COUNT(*) OVER (PARTITION BY k) AS c FROM t) WHERE v > 0) GROUP BY c, e",
        "SELECT id, SUM(v) OVER w, COUNT(*) OVER w FROM t WINDOW w AS (PARTITION BY b ORDER BY id)",
        "SELECT id, SUM(d) OVER (PARTITION BY k ORDER BY ts), MIN(f) OVER (PARTITION BY k ORDER BY ts) FROM t",
        "SELECT id, k, NTILE(2) OVER (PARTITION BY k ORDER BY id) FROM (SELECT DISTINCT id, k FROM t)",
        "SELECT id, SUM(c) OVER (PARTITION BY b) FROM (SELECT id, b, COUNT(*) AS c FROM t GROUP BY id, b)",
    ],
}  # fmt: skip
