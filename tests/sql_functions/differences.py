"""Where headwater gives something else than Flink, on purpose. Each reason is also a note of the function."""

from __future__ import annotations

from tests.sql_functions.case import Case

DIFFERENT: dict[str, str] = {}
"""{sql: reason} for the kernel and for Spark."""

DIFFERENT_ON_SPARK: dict[str, str] = {}
"""{sql: reason} for Spark alone."""


def accepted(case: Case, engine: str) -> bool:
    return case.sql in DIFFERENT or (engine == "spark" and case.sql in DIFFERENT_ON_SPARK)
