"""The dialect of SQL: Flink's own."""

from __future__ import annotations


class SqlDialect:
    """As in PyFlink. Only DEFAULT can be set."""

    DEFAULT = 0
    HIVE = 1
