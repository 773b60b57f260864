"""Projections and filters."""

from tests.unit.table.stream.oracle import Query

CALC: dict[str, list[Query | str]] = {
    "calc": [
        "SELECT id, k, v FROM t",
        "SELECT id + 1, UPPER(k), v * 2, d FROM t WHERE v > 1",
        "SELECT id FROM t WHERE k IS NULL OR v IS NULL",
        "SELECT CASE WHEN v > 2 THEN 'big' WHEN v IS NULL THEN 'none' ELSE 'small' END, COALESCE(k, '-') FROM t",
        "SELECT k, v FROM t WHERE k IN ('a', 'b') AND v BETWEEN 0 AND 3",
        "SELECT id, ABS(v), k LIKE 'a%' FROM t WHERE NOT (v < 0)",
        "SELECT x + 1 FROM (SELECT id * 2 AS x, k FROM t) WHERE k = 'a' AND x > 3",
    ],
    "three-valued logic": [
        "SELECT id, b AND v > 1, b OR v > 1, NOT b FROM t",
        "SELECT id, (v > 1) IS TRUE, (v > 1) IS NOT TRUE, (v > 1) IS FALSE, (v > 1) IS NOT FALSE FROM t",
        Query("SELECT id FROM t WHERE (b AND v > 0) IS UNKNOWN", "SELECT id FROM t WHERE (b AND v > 0) IS NULL"),
        "SELECT id, v FROM t WHERE NOT (b OR v > 2)",
        "SELECT id, v FROM t WHERE NOT (b AND v > 2)",
        "SELECT id, k IN ('a', NULL), v NOT IN (1, 2, NULL) FROM t",
        "SELECT id FROM t WHERE v NOT IN (1, 2, NULL)",
        "SELECT id, v BETWEEN 2 AND NULL, v NOT BETWEEN 0 AND 2 FROM t",
        "SELECT id, v IS DISTINCT FROM id, k IS NOT DISTINCT FROM NULL FROM t",
        "SELECT id FROM t WHERE CASE WHEN b THEN v > 1 WHEN NOT b THEN v < 1 END",
        "SELECT id, b = (v > 1), b <> (id > 3) FROM t",
        "SELECT COALESCE(b, FALSE), COALESCE(v > 1, b, TRUE) FROM t",
    ],
    "numbers": [
        Query("SELECT v / 2, id / 3, -v / 2 FROM t", "SELECT v // 2, id // 3, -v // 2 FROM t"),
        "SELECT MOD(v, 3), MOD(id, 2), MOD(v, -2) FROM t",
        "SELECT d + v, d - id, d + d, -d FROM t",
        "SELECT d * 2, d * d FROM t WHERE d > v",
        "SELECT f * 2, f + v, f - id, -f FROM t WHERE f < 2",
        "SELECT CAST(v AS INT), CAST(id AS DOUBLE), CAST(v AS DECIMAL(12, 3)) FROM t",
        "SELECT id FROM t WHERE d > 1 AND d <= 3.5 AND f >= v",
        "SELECT NULLIF(v, id), NULLIF(v + 1, 2), ABS(d), ABS(f) FROM t",
        "SELECT FLOOR(d), CEIL(d), FLOOR(f), CEIL(f) FROM t",
        "SELECT SIGN(v), SQRT(ABS(f)), POWER(CAST(v AS DOUBLE), 2) FROM t",
    ],
    "text and time": [
        "SELECT k || '-' || k, LOWER(UPPER(k)), CHAR_LENGTH(k) FROM t",
        "SELECT id FROM t WHERE k || 'x' > 'ax' AND k LIKE '_' AND k NOT LIKE 'b%'",
        "SELECT SUBSTRING(k || 'xyz', 2, 2), REPLACE(k, 'a', 'zz'), POSITION('a' IN k) FROM t",
        Query(
            "SELECT CAST(v AS STRING), CAST(b AS STRING) FROM t",
            "SELECT CAST(v AS VARCHAR), UPPER(CAST(b AS VARCHAR)) FROM t",
        ),
        "SELECT ts + INTERVAL '1' MINUTE, ts - INTERVAL '3' SECOND FROM t WHERE ts > TIMESTAMP '2024-01-01 00:00:05'",
        "SELECT EXTRACT(SECOND FROM ts), EXTRACT(MINUTE FROM ts), CAST(ts AS DATE) FROM t",
        "SELECT id FROM t WHERE ts BETWEEN TIMESTAMP '2024-01-01 00:00:02' AND TIMESTAMP '2024-01-01 00:00:20'",
        "SELECT CASE k WHEN 'a' THEN 1 WHEN 'b' THEN 2 ELSE 0 END, CASE WHEN k > 'a' THEN ts END FROM t",
        "SELECT TRIM(BOTH 'a' FROM k || 'ba'), REVERSE(k || 'x') FROM t",
    ],
    "nested": [
        "SELECT x, y FROM (SELECT v + 1 AS x, z AS y FROM (SELECT v, k || 'x' AS z FROM t WHERE id > 1) WHERE v <"
        " 4) WHERE x > 0",
        "SELECT 1, 'one', TRUE, CAST(NULL AS BIGINT) FROM t WHERE id < 3",
        "SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (2, 'b'), (3, CAST(NULL AS VARCHAR(3)))) w(x, y)",
        "SELECT t.*, v + 1 FROM t WHERE FALSE OR id = 2",
        "SELECT id FROM t WHERE FALSE",
        "SELECT id FROM t WHERE 1 = 1 AND (TRUE OR v > 1)",
        "WITH a AS (SELECT id, v FROM t WHERE v > 0), b AS (SELECT id, v * 2 AS w FROM a) SELECT w, id FROM b WHERE"
        " w > 4",
    ],
    "unnest": [
        "SELECT id, x FROM t CROSS JOIN UNNEST(ARRAY[v, id, 7]) AS w(x)",
        "SELECT x, COUNT(*) FROM t CROSS JOIN UNNEST(ARRAY[k, 'a']) AS w(x) GROUP BY x",
        "SELECT id, x FROM t CROSS JOIN UNNEST(ARRAY[1, 2, 3]) AS w(x) WHERE x < v",
        "SELECT x, y, COUNT(*) FROM t CROSS JOIN UNNEST(ARRAY[1, 2]) AS a(x) CROSS JOIN UNNEST(ARRAY[1, 2]) AS b(y)"
        " GROUP BY x, y",
    ],
}  # fmt: skip
