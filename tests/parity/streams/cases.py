"""Queries over a stream of events with late rows, NULLs and ties, and how their changelogs add up.

Imports nothing of headwater or PyFlink: the recorder loads this file into PyFlink's Python.
"""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
RECORDED = FOLDER / "recorded.jsonl"
TABLE = f"""
CREATE TABLE events (id INT, k STRING, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '2' SECOND)
WITH ('connector' = 'filesystem', 'path' = '{FOLDER / "events"}', 'format' = 'csv', 'csv.null-literal' = '')
"""


def queries() -> list[str]:
    return [line.rstrip(";") for line in (FOLDER / "queries.sql").read_text(encoding="utf-8").splitlines()]


def table_of(changes: Iterable[Any]) -> list[list[Any]]:
    """The rows that a changelog leaves, as texts, each with how often it is there."""
    rows: Counter[tuple[str, ...]] = Counter()
    for row in changes:
        kind = row.get_row_kind().name
        rows[tuple(map(_text, row))] += 1 if kind in ("INSERT", "UPDATE_AFTER") else -1
    return sorted([list(row), count] for row, count in rows.items() if count)


def _text(value: Any) -> str:
    """PyFlink makes times of floating-point numbers: they are right to the millisecond only."""
    if isinstance(value, datetime.datetime):
        return (value + datetime.timedelta(microseconds=500)).isoformat(timespec="milliseconds")
    return str(value)


def recorded() -> dict[str, list[list[Any]]]:
    lines = map(json.loads, RECORDED.read_text(encoding="utf-8").splitlines())
    return {line["query"]: line["rows"] for line in lines}
