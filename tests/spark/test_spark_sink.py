"""SparkSink: output of epochs as DataFrames. On real Spark, with the sink contract and a job that dies."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from headwater.common import Configuration, Types, WatermarkStrategy
from headwater.common.connector import Committer, CommitterContext, Sink, SinkWriter, WriterContext
from headwater.common.errors import CheckpointError, ConfigurationError
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.connectors.spark_sink import SparkSink
from headwater.runtime.spark.session import spark_session
from headwater.runtime.spark.settings import settings_of
from headwater.testing import SINK_CHECKS, SinkCase, in_process
from headwater.testing.sink_contract import committer_of, write
from tests.spark.harness import JobRunner, epochs_of
from tests.unit.test_newcomers_pages import run_page

ROW = Types.ROW_NAMED(["i", "text"], [Types.LONG(), Types.STRING()])


CHECKS = [
    check
    for check in SINK_CHECKS
    if os.environ.get("CHAOS") == "full" or check.__name__.startswith(("nothing_is", "committing_twice", "two_writers"))
]
"""Each writes with Spark, which takes a while: in an ordinary run those that say most."""


def per_epoch(directory: str) -> Callable[[Any, int], None]:
    return lambda df, epoch: df.write.mode("overwrite").parquet(f"{directory}/epoch={epoch}")


def rows(directory: Path) -> list[Any]:
    found = []
    for path in sorted(directory.glob("epoch=*/*.parquet")):
        found += pyarrow.parquet.ParquetFile(path).read().to_pylist()
    return found


class OnSpark(Sink):
    """The sink with a session, as a job on Spark gives it to the committer."""

    def __init__(self, sink: SparkSink) -> None:
        self._sink = sink

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return self._sink.create_writer(context)

    def create_committer(self) -> Committer:
        settings = settings_of(Configuration.from_dict({"headwater.master": "local[2]"}), "contract")
        committer = self._sink.create_committer()
        opened = committer.open

        def open_with_spark(context: CommitterContext) -> None:
            opened(CommitterContext(**{**context.__dict__, "spark_session": lambda: spark_session(settings)}))

        committer.open = open_with_spark  # type: ignore[method-assign]
        return committer


@pytest.fixture
def case(tmp_path: Path) -> SinkCase:
    sink = OnSpark(SparkSink(per_epoch(str(tmp_path / "out")), ROW))
    return SinkCase(sink, lambda: rows(tmp_path / "out"), whole_epochs=True)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.__name__))
def test_contract(check: Callable[[SinkCase], None], case: SinkCase) -> None:
    check(case)


def test_a_part_that_is_gone_is_an_error(case: SinkCase) -> None:
    parts = write(case, case.records(0, 5), 1)
    assert case.files is not None
    case.files.delete(parts[0].name)
    with pytest.raises(CheckpointError, match="is gone or was changed"):
        committer_of(case).commit(parts)


def test_a_job_whose_function_fails_half_way(tmp_path: Path, run_job: JobRunner) -> None:
    calls: list[int] = []

    def flaky(df: Any, epoch: int) -> None:
        calls.append(epoch)
        per_epoch(str(tmp_path / "out"))(df, epoch)
        if len(calls) == 2:
            raise ConnectionError("the answer got lost")

    env = run_job.environment(2, **epochs_of(50))
    source = DataGeneratorSource(lambda i: {"i": i, "text": str(i)}, count=200)
    env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").sink_to(SparkSink(flaky, ROW))
    env.execute("to spark")
    assert Counter(row["i"] for row in rows(tmp_path / "out")) == Counter(range(200))
    assert calls[1] == calls[2] and sorted(calls) == calls


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    run_page("connectors/spark.md")
    assert sorted(row["price"] for row in rows(tmp_path / "out/prices")) == [5.25, 7.5]


def test_what_cannot_work_says_so() -> None:
    with pytest.raises(ConfigurationError, match="expected a function"):
        SparkSink("parquet", ROW)  # type: ignore[arg-type]
    with in_process(), pytest.raises(ConfigurationError, match="needs Spark"):
        env = StreamExecutionEnvironment.get_execution_environment()
        env.from_collection([{"i": 1, "text": "x"}]).sink_to(SparkSink(lambda df, epoch: None, ROW))
        env.execute("without spark")
