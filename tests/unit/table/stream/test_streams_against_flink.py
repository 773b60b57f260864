"""Queries on streams leave the tables that Flink's left over the same rows (`make parity-streams` records)."""

from __future__ import annotations

import pytest

from headwater.table import EnvironmentSettings, TableEnvironment
from headwater.testing import in_process
from tests.parity.streams import cases

RECORDED = cases.recorded()


@pytest.mark.parametrize("number", range(len(RECORDED)))
@pytest.mark.parametrize("epoch_records", [7, 1000])
def test_as_flink(number: int, epoch_records: int) -> None:
    query, expected = list(RECORDED.items())[number]
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("table.local-time-zone", "UTC")
    t_env.execute_sql(cases.TABLE)
    with in_process(epoch_records=epoch_records), t_env.execute_sql(query).collect() as changes:
        assert cases.table_of(changes) == expected


def test_all_queries_are_recorded() -> None:
    assert list(RECORDED) == cases.queries() and all(RECORDED.values())
