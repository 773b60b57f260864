"""Python in SQL: a function of rows, one of pandas, one that gives rows, and an aggregate of one's own."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from headwater.table import AggregateFunction, EnvironmentSettings, TableEnvironment, udaf, udf, udtf


@udf
def domain(address: str) -> str:
    return address.rpartition("@")[2]


@udf(result_type="DOUBLE", func_type="pandas")
def euros(cents: pd.Series) -> pd.Series:
    return cents / 100


@udtf
def tags(text: str) -> Iterator[tuple[str, int]]:
    for tag in text.split(","):
        yield tag, len(tag)


class Spread(AggregateFunction):
    """The largest value less the smallest one."""

    def create_accumulator(self) -> list[int]:
        return []

    def accumulate(self, accumulator: list[int], value: Any) -> None:
        if value is not None:
            accumulator[:] = [min(*accumulator, value), max(*accumulator, value)] if accumulator else [value, value]

    def get_value(self, accumulator: list[int]) -> int | None:
        return accumulator[1] - accumulator[0] if accumulator else None


t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
t_env.get_config().set("parallelism.default", "1")
for name, function in {"domain": domain, "euros": euros, "tags": tags, "spread": udaf(Spread())}.items():
    t_env.create_temporary_system_function(name, function)
orders = t_env.from_elements(
    [("ann@a.org", 1250, "new,red"), ("bob@b.org", 300, "old"), ("cyd@a.org", 5000, "new")], ["who", "cents", "tags"]
)
t_env.create_temporary_view("orders", orders)

for query in (
    "SELECT who, euros(cents) AS euros FROM orders WHERE domain(who) = 'a.org'",
    "SELECT tag, COUNT(*) AS orders FROM orders, LATERAL TABLE(tags(tags)) AS t(tag, size) GROUP BY tag",
    "SELECT domain(who) AS domain, spread(cents) AS spread FROM orders GROUP BY domain(who)",
):
    with t_env.execute_sql(query).collect() as rows:
        for row in rows:
            print(row.get_row_kind(), list(row))
