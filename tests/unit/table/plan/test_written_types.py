"""Types as SQL writes them, and what Flink 2.3's DESCRIBE says of them."""

from __future__ import annotations

import pytest

from headwater.table import EnvironmentSettings, TableEnvironment


@pytest.mark.parametrize(
    ("written", "described"),
    [
        ("VARCHAR", "STRING"),
        ("CHARACTER VARYING", "STRING"),
        ("VARCHAR(3)", "VARCHAR(3)"),
        ("VARBINARY", "BYTES"),
        ("CHAR", "CHAR(1)"),
        ("BINARY", "BINARY(1)"),
        ("DECIMAL", "DECIMAL(10, 0)"),
        ("ARRAY<VARCHAR>", "ARRAY<STRING>"),
        ("ROW<x VARCHAR, y CHAR>", "ROW<`x` STRING, `y` CHAR(1)>"),
    ],
)
def test_types_without_a_length(written: str, described: str) -> None:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.execute_sql(f"CREATE TABLE t (a {written}) WITH ('connector' = 'blackhole')")
    (row,) = t_env.execute_sql("DESCRIBE t").collect()
    assert row[1] == described
