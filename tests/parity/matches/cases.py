"""Queries with MATCH_RECOGNIZE that are compared with Flink, the rows that they see, and what it gave."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

PATTERNS = (
    "A B", "A B C", "A+ B", "A* B", "A? B", "A{2} B", "A{2,3} B", "A{2,} B", "A+? B", "A*? B", "A B+? C", "A B* C",
    "A B? C", "A B{1,2} C", "A{0,2} B", "A B*? C", "A{2,}? B", "A B{2,3}? C", "A+ B+ C", "A B C+?", "A B{2}", "A?? B",
    "A B+", "(A B) C", "(A B)+ C", "A | B", "A B*",
)  # fmt: skip
DEFINITIONS = {
    "row": ("A AS A.price < 4", "B AS B.price >= 3", "C AS C.price > 4"),
    "before": (
        "A AS A.price < 5",
        "B AS B.price > A.price",
        "C AS C.price < LAST(B.price, 1) OR C.price > FIRST(A.price)",
    ),
    "sums": ("A AS SUM(A.price) < 9", "B AS B.price > MIN(A.price)", "C AS C.price <> LAST(A.price, 1)"),
    "open": (
        "B AS B.price < LAST(B.price, 1) OR LAST(B.price, 1) IS NULL",
        "C AS COUNT(B.price) > 1 AND C.tax = 1",
    ),
}
SKIPS = ("SKIP PAST LAST ROW", "SKIP TO NEXT ROW", "SKIP TO LAST B")
MEASURES = (
    "FIRST(A.price) AS a1, LAST(A.price) AS a2, COUNT(A.price) AS an, SUM(B.price) AS bs, LAST(B.tax, 1) AS b1, "
    "MAX(price) AS top, COUNT(*) AS n, MATCH_ROWTIME() AS rt"
)


def rows() -> list[tuple[str, str, int, int]]:
    """(symbol, time, price, tax), in the order of time."""
    chosen = random.Random(7)
    made = []
    for second in range(60):
        for symbol in "XY":
            if chosen.random() < 0.8:
                at = f"2020-01-01 10:{second // 60:02}:{second % 60:02}.{'000' if symbol == 'X' else '500'}"
                made.append((symbol, at, chosen.randint(1, 6), chosen.randint(1, 2)))
    return made


def queries() -> dict[str, str]:
    """{name: query}"""
    found = {}
    for pattern in PATTERNS:
        for kind, definitions in DEFINITIONS.items():
            text = ", ".join(each for each in definitions if each[0] in pattern)
            for skip in SKIPS:
                for within in ("", " WITHIN INTERVAL '4' SECOND"):
                    if within and skip != SKIPS[0]:
                        continue
                    name = f"{pattern} {kind} {skip[5:]}{within and ' within'}"
                    found[name] = (
                        f"SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts MEASURES {MEASURES} "
                        f"ONE ROW PER MATCH AFTER MATCH {skip} PATTERN ({pattern}){within} DEFINE {text})"
                    )
    return found


def recorded() -> dict[str, dict[str, Any]]:
    """{name: the rows that Flink gave, or its error}"""
    lines = (HERE / "recorded.jsonl").read_text(encoding="utf-8").splitlines()
    return {case["name"]: case for case in map(json.loads, lines)}
