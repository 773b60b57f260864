"""Random queries, nested up to four deep, give after every epoch what DuckDB gives for the rows so far.

`SQL_QUERIES=5000` tries that many; `SQL_SEED=3` others than before. What fails is made simpler, and printed with
its rows.
"""

from __future__ import annotations

import os

import pytest

from tests.unit.table.stream.random_sql.trial import Trial, try_job

QUERIES = int(os.environ.get("SQL_QUERIES", "40"))
pytestmark = pytest.mark.timeout(120 + 3 * QUERIES)
SEED = int(os.environ.get("SQL_SEED", "0"))


def test_random_queries_give_what_duckdb_gives() -> None:
    found = Trial()
    job = SEED * 100_000
    while found.ran + sum(found.refused.values()) < QUERIES:
        try_job(job, found)
        job += 1
    print(f"{found.ran} queries ran, {sum(found.refused.values())} were refused: {found.refused.most_common(20)}")
    assert not found.failures, f"{len(found.failures)} of {found.ran}:\n" + "\n\n".join(found.failures)
