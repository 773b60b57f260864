"""Values as people see them: the table of characters, and the text of the print connector. Recorded from Flink 2.3."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pytest

from headwater.common.types import Row
from headwater.table import EnvironmentSettings, TableEnvironment
from headwater.table.batch.rows import java_text, sql_text, tableau
from headwater.table.types.logical import RowField, RowType
from headwater.table.types.type_text import parse_type

MOMENT = datetime.datetime(2020, 1, 1, 10, 0, 5, 120000)


@pytest.mark.parametrize(
    ("value", "type_", "shown", "printed"),
    [
        (True, "BOOLEAN", "TRUE", "true"),
        (1.0e10, "DOUBLE", "1.0E10", "1.0E10"),
        (1.0e-5, "DOUBLE", "1.0E-5", "1.0E-5"),
        (2.5, "DOUBLE", "2.5", "2.5"),
        (decimal.Decimal("1.50"), "DECIMAL(10, 2)", "1.50", "1.50"),
        (b"\x0a\xff", "BYTES", "x'0aff'", "[10, -1]"),
        ([1, None], "ARRAY<INT>", "[1, NULL]", "[1, null]"),
        ({"k": 1}, "MAP<STRING, INT>", "{k=1}", "{k=1}"),
        (Row(1, "z"), "ROW<a INT, b STRING>", "(1, z)", "+I[1, z]"),
        (MOMENT, "TIMESTAMP(3)", "2020-01-01 10:00:05.120", "2020-01-01T10:00:05.120"),
        (datetime.datetime(2020, 1, 1), "TIMESTAMP(0)", "2020-01-01 00:00:00", "2020-01-01T00:00"),
        (datetime.date(2020, 1, 1), "DATE", "2020-01-01", "2020-01-01"),
        (datetime.time(10, 0), "TIME", "10:00:00", "10:00"),
    ],
)
def test_values(value: Any, type_: str, shown: str, printed: str) -> None:
    assert sql_text(value, parse_type(type_)) == shown
    assert java_text(value, parse_type(type_)) == printed


def test_wide_letters_keep_the_columns_straight() -> None:
    row_type = RowType(fields=(RowField("名", parse_type("INT")), RowField("b", parse_type("BOOLEAN"))))
    assert list(tableau([Row(1, None)], row_type)) == [
        "+-------------+--------+",
        "|          名 |      b |",
        "+-------------+--------+",
        "|           1 | <NULL> |",
        "+-------------+--------+",
        "1 row in set",
    ]
    assert list(tableau([], row_type)) == ["Empty set"]


def test_what_describe_prints(capsys: pytest.CaptureFixture[str]) -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    environment.execute_sql("CREATE TABLE p (a INT, m MAP<STRING, INT>) WITH ('connector' = 'print')").print()
    environment.execute_sql("DESCRIBE p").print()
    assert capsys.readouterr().out == (
        "OK\n"
        "+------+------------------+------+-----+--------+-----------+\n"
        "| name |             type | null | key | extras | watermark |\n"
        "+------+------------------+------+-----+--------+-----------+\n"
        "|    a |              INT | TRUE |     |        |           |\n"
        "|    m | MAP<STRING, INT> | TRUE |     |        |           |\n"
        "+------+------------------+------+-----+--------+-----------+\n"
        "2 rows in set\n"
    )
