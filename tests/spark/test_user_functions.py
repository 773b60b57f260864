"""Functions of users in batch mode: Spark calls them in its Python workers. The same queries run on streams."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from headwater.table import DataTypes, EnvironmentSettings, TableEnvironment
from headwater.table.expressions import col
from headwater.table.udf import AggregateFunction, ScalarFunction, TableAggregateFunction, udaf, udf, udtaf, udtf
from headwater.testing import in_process


def functions() -> dict[str, Any]:
    """Defined here, so that they are pickled by value."""

    @udf
    def twice(x: int) -> int | None:
        return None if x is None else x * 2

    class Scaled(ScalarFunction):
        def open(self, function_context: Any) -> None:
            self.factor = 3

        def eval(self, x: int) -> int:
            return x * self.factor

    @udf
    async def slow(x: int) -> str:
        await asyncio.sleep(0)
        return f"<{x}>"

    @udf(result_type="DOUBLE", func_type="pandas")
    def half(x: pd.Series) -> pd.Series:
        return x / 2

    @udtf
    def words(s: str) -> Iterator[tuple[str, int]]:
        for word in (s or "").split():
            yield word, len(word)

    class Mean(AggregateFunction):
        def create_accumulator(self) -> list[Any]:
            return [0, 0]

        def accumulate(self, accumulator: Any, value: Any) -> None:
            if value is not None:
                accumulator[0] += value
                accumulator[1] += 1

        def get_value(self, accumulator: Any) -> Any:
            return accumulator[0] / accumulator[1] if accumulator[1] else None

        def get_result_type(self) -> Any:
            return DataTypes.DOUBLE()

    class Top2(TableAggregateFunction):
        def create_accumulator(self) -> list[int]:
            return []

        def accumulate(self, accumulator: list[int], value: int) -> None:
            accumulator.append(value)

        def emit_value(self, accumulator: list[int]) -> Iterator[tuple[int, int]]:
            yield from enumerate(sorted(accumulator, reverse=True)[:2], 1)

    spread = udaf(lambda x: x.max() - x.min(), result_type="BIGINT", func_type="pandas", name="spread")
    return {
        "twice": twice, "scaled": udf(Scaled()), "slow": slow, "half": half, "words": words, "mean": udaf(Mean()),
        "spread": spread, "top2": udtaf(Top2()),
    }  # fmt: skip


QUERIES = [
    "SELECT id, twice(v), scaled(id), slow(id) FROM t",
    "SELECT half(id) FROM t WHERE twice(id) > 2",
    "SELECT id, w, n FROM t, LATERAL TABLE(words(s)) AS f(w, n)",
    "SELECT id, w FROM t LEFT JOIN LATERAL TABLE(words(s)) AS f(w, n) ON TRUE",
    "SELECT mean(v), COUNT(*), spread(id) FROM t",
    "SELECT MOD(id, 2), mean(v) FILTER (WHERE id < 4), SUM(v) FROM t GROUP BY MOD(id, 2)",
]


def environment(settings: EnvironmentSettings) -> TableEnvironment:
    made = TableEnvironment.create(settings)
    for name, function in functions().items():
        made.create_temporary_system_function(name, function)
    rows = [(1, 10, "a bb"), (2, 20, "c"), (3, None, ""), (4, 40, None)]
    schema = DataTypes.ROW(
        [DataTypes.FIELD("id", DataTypes.BIGINT()), DataTypes.FIELD("v", DataTypes.INT()),
         DataTypes.FIELD("s", DataTypes.STRING())]
    )  # fmt: skip
    made.create_temporary_view("t", made.from_elements(rows, schema))
    return made


def rows(result: Any) -> list[tuple[Any, ...]]:
    with result.execute().collect() as found:
        return sorted((tuple(row) for row in found), key=repr)


@pytest.fixture(scope="module")
def batch() -> TableEnvironment:
    return environment(EnvironmentSettings.in_batch_mode())


@pytest.mark.parametrize("sql", QUERIES)
def test_both_engines_give_the_same(sql: str, batch: TableEnvironment) -> None:
    found = rows(batch.sql_query(sql))
    assert found
    with in_process():
        assert rows(environment(EnvironmentSettings.in_streaming_mode()).sql_query(sql)) == found


def test_table_aggregates(batch: TableEnvironment) -> None:
    keyed = batch.from_path("t").add_columns((col("id") % 2).alias("k")).group_by(col("k"))
    top = functions()["top2"](col("id")).alias("r", "x")
    found = rows(keyed.flat_aggregate(top).select(col("k"), col("r"), col("x")))
    assert found == [(0, 1, 4), (0, 2, 2), (1, 1, 3), (1, 2, 1)]


def test_an_error_names_place_and_arguments(batch: TableEnvironment) -> None:
    batch.create_temporary_system_function("bad", udf(lambda x: 1 // (x - 2), result_type="BIGINT"))
    with pytest.raises(Exception, match=r"function bad at line 1, column 8 failed: ZeroDivisionError") as caught:
        rows(batch.sql_query("SELECT bad(id) FROM t"))
    assert "arguments: (2,)" in str(caught.value)
