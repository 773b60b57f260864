"""Where headwater gives something else than Flink, on purpose. The page of functions says so, too.

Most are about times before 1970, which Flink's generated code computes by dividing towards zero: 1969-12-31 23:59
has the hour 0 and the date 1970-01-01 there, 1900-03-01 12:30 the hour -11.
"""

from __future__ import annotations

from tests.sql_functions.case import Case

BEFORE_1970 = {"ts": {2, 6}, "z": {0, 2, 6}, "dt": {2}}
"""{column: rows}. Of `z`, row 0 is before 1970 by New York's clocks."""

DIVIDED_TOWARDS_ZERO = {
    "EXTRACT",
    "YEAR",
    "QUARTER",
    "MONTH",
    "WEEK",
    "DAYOFYEAR",
    "DAYOFMONTH",
    "DAYOFWEEK",
    "HOUR",
    "MINUTE",
    "SECOND",
    "FLOOR",
    "CEIL",
    "CAST",
    "TIMESTAMPADD",
    "TIMESTAMPDIFF",
}
"""Functions whose rows before 1970 are not compared with Flink's."""

DIFFERENT_ROWS: dict[str, set[int]] = {
    "(ts = z)": {3},  # half past two in the gap of summer time is half past three
    "ROUND(n, j)": {4},  # does not fit: NULL
    "UNHEX(u)": {6},  # an odd number of digits
    "CEIL(ts TO WEEK)": {3, 4},  # Flink rounds a Sunday's afternoon down
    "FLOOR(z TO DAY)": {3, 7},  # Flink takes the offset of the moment for that of its midnight
    "FLOOR(z TO MONTH)": {3, 7},
    "CEIL(z TO DAY)": {4},
    "CEIL(z TO MONTH)": {4},
    "TO_DATE(dts, 'yyyy-MM-dd HH:mm:ss')": {0, 2, 4, 6},  # Flink: the year 1705471
    "TO_TIMESTAMP_LTZ(e, 0)": {3},  # Flink stops in the year 2262
    "TRY_CAST(num AS DATE)": {0},  # there is no year 0
    "(w = n)": {1, 2},  # Flink rounds 1.25 to compare it with a DECIMAL(38, 0)
    "SUM(w)": {1},  # an overflow is NULL; Flink goes on from there with the next value
}
"""{sql: rows}: what is right is worth more than what Flink does, or Flink's is an accident."""

DIFFERENT: dict[str, str] = {
    "CEIL(dt TO DAY)": "a date is a whole day; Flink gives the next one",
    "CEIL(tm TO MINUTE)": "Flink fails",
    "GREATEST(n, m)": "Flink fails with decimals of different types and a NULL",
    "LEAST(n, m)": "Flink fails with decimals of different types and a NULL",
    "MAP_FROM_ARRAYS(a, a)": "a key of a map cannot be NULL",
    "CAST(ts AS TIME(0))": "Flink fails",
    "COUNT(i, j)": "Flink counts one argument only",
}
"""{sql: reason}: nothing of it is compared."""

DIFFERENT_TYPES: dict[str, str] = {}
"""{sql: reason}: another type."""

DIFFERENT_ON_SPARK: dict[str, str] = {
    "SUM(l)": "Spark raises an error when a BIGINT overflows",
    "AVG(l)": "Spark raises an error when a BIGINT overflows",
}
"""{sql: reason} for Spark alone."""


def accepted(case: Case, engine: str) -> bool:
    return case.sql in DIFFERENT or (engine == "spark" and case.sql in DIFFERENT_ON_SPARK)


def not_compared(case: Case) -> set[int]:
    """The rows that are not compared with Flink's."""
    found = set(DIFFERENT_ROWS.get(case.sql, ()))
    if case.function in DIVIDED_TOWARDS_ZERO:
        for argument in case.arguments:
            found |= BEFORE_1970.get(argument.column, set())
    return found
