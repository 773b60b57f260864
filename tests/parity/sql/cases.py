"""The tables and queries that are compared with Flink, and what it gave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def tables() -> list[str]:
    """The statements that make the tables."""
    return [each for each in (HERE / "tables.sql").read_text(encoding="utf-8").split(";\n") if each.strip()]


def queries() -> dict[str, str]:
    """{name: query}"""
    lines = (HERE / "queries.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split(": ", 1) for line in lines if line.strip())


def recorded() -> dict[str, dict[str, Any]]:
    """{name: what Flink gave: columns [name, type], rows as its JSON format writes them, or an error}"""
    lines = (HERE / "recorded.jsonl").read_text(encoding="utf-8").splitlines()
    return {case["name"]: case for case in map(json.loads, lines)}


def is_ordered(query: str) -> bool:
    """Whether the order of the rows is part of the answer."""
    return "ORDER BY" in query.rpartition(")")[2]
