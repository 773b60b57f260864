"""What docs/dataframes.md shows works, and gives the rows that it describes."""

from __future__ import annotations

from headwater.datastream import StreamExecutionEnvironment
from tests.unit.test_newcomers_pages import run_page


def test_the_page_on_dataframes() -> None:
    names = run_page("dataframes.md")
    with names["stream"].execute_and_collect() as rows:
        assert sorted(rows) == [("cellar", 11.0 * 1.8 + 32), ("roof", 20.5 * 1.8 + 32)]

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    frame = names["spark"].sql(
        "SELECT 1 AS i, 1.5D AS f, 's' AS s, CAST(1.25 AS DECIMAL(5, 2)) AS d, ARRAY(1, 2) AS a, "
        "NAMED_STRUCT('x', 1) AS st, MAP('k', 2) AS m, TIMESTAMP '2026-01-01 00:00:00' AS t, NULL AS n"
    )
    described = env.from_dataframe(frame).map(lambda row: [type(row[name]).__name__ for name in "ifsdatn"] + [
        row["st"], row["m"], row["t"].tzinfo is not None
    ])  # fmt: skip
    with described.execute_and_collect() as rows:
        assert list(rows) == [
            ["int", "float", "str", "Decimal", "list", "datetime", "NoneType", {"x": 1}, [("k", 2)], True]
        ]
