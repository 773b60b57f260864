"""Whole programs: a PyFlink one, unchanged; slots that die; a row that the sink refuses."""

from __future__ import annotations

import sys

import pytest

from headwater.common import Row
from headwater.compat import pyflink_imports
from headwater.datastream import StreamExecutionEnvironment
from headwater.testing import CollectingSink, in_process
from tests.postgres_server import jdbc_url
from tests.unit.connectors.jdbc import tables
from tests.unit.connectors.jdbc.test_sink import COUNTED, count_job

PROGRAM = """
import sys
from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink

env = StreamExecutionEnvironment.get_execution_environment()
type_info = Types.ROW([Types.INT(), Types.STRING()])
env.from_collection([(101, "Stream Processing with Apache Flink"), (102, "It's Python")], type_info=type_info) \\
    .add_sink(
        JdbcSink.sink(
            "insert into books (id, title) values (?, ?)",
            type_info,
            JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
                .with_url(sys.argv[1])
                .with_driver_name('org.postgresql.Driver')
                .with_user_name('postgres')
                .with_password('')
                .build(),
            JdbcExecutionOptions.builder()
                .with_batch_interval_ms(1000)
                .with_batch_size(200)
                .with_max_retries(5)
                .build()
        )
    )
env.execute()
"""


@pytest.mark.filterwarnings("ignore::headwater.datastream.no_effect.NoEffectWarning")
def test_a_pyflink_program_runs_unchanged(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tables.run(database, "CREATE TABLE books (id int, title varchar(100))")
    monkeypatch.setattr(sys, "argv", ["program", jdbc_url(database).replace("&user=postgres", "")])
    pyflink_imports.install()
    with in_process():
        exec(compile(PROGRAM, "program", "exec"), {"__name__": "program"})
    found = tables.run(database, "SELECT * FROM books ORDER BY id")
    assert found == [(101, "Stream Processing with Apache Flink"), (102, "It's Python")]


@pytest.mark.parametrize("at", ["chunk-received", "processed", "snapshot-written"])
def test_slots_that_die_write_nothing_twice(database: str, at: str) -> None:
    tables.run(database, "CREATE TABLE numbers (i bigint, text text)")
    with in_process(epoch_records=40) as here:
        here.kill_slot("Reduce", epoch=2, at=at)
        here.fail_attempt(epoch=3)
        count_job(tables.sink(database))
    assert sorted(tables.run(database, "SELECT i, text FROM numbers")) == COUNTED


def test_a_row_that_the_sink_refuses_is_a_dead_letter(database: str) -> None:
    tables.run(database, "CREATE TABLE numbers (i bigint, text text)")
    letters = CollectingSink()
    with in_process(epoch_records=5):
        env = StreamExecutionEnvironment.get_execution_environment()
        rows = env.from_sequence(0, 19).map(lambda n: Row(n, "bad\0" if n == 7 else "good"))
        rows.add_sink(tables.sink(database)).with_dead_letters(letters)
        env.execute("refused")
    assert sorted(tables.run(database, "SELECT i FROM numbers")) == [(n,) for n in range(20) if n != 7]
    (letter,) = letters.results()
    assert "character 0" in str(letter)
