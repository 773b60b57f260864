"""Sources of Delta and Iceberg: the contract, versions, and following."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headwater.common import WatermarkStrategy
from headwater.common.errors import CheckpointError, HeadwaterError
from headwater.datastream import StreamExecutionEnvironment
from headwater.testing import SOURCE_CHECKS, CollectingSink, JobCrashed, SourceCase, in_process
from tests.unit.connectors.lake.tables import CASES, SCHEMA, plain_sink
from tests.waiting import wait_until


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    made = CASES[request.param](tmp_path / "lake")
    plain_sink(made)  # creates the table
    return made


def rows(start: int, stop: int) -> pa.Table:
    return pa.table({"i": list(range(start, stop)), "text": [str(i) for i in range(start, stop)]}, schema=SCHEMA)


def read(source: Any, splits: Any = None) -> list[Any]:
    found = []
    for split in source.discover_splits(2, frozenset()) if splits is None else splits:
        reader = source.open_reader(split, None)
        while (batch := reader.read_batch(100)) is not None:
            found += batch
    return found


@pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: str(check.__name__))
def test_contract(check: Callable[[SourceCase], None], case: Any) -> None:
    case.append(rows(0, 20))
    case.append(rows(20, 30))
    expected = read(case.source().build())
    assert sorted(row["i"] for row in expected) == list(range(30))
    check(SourceCase(lambda: case.source().build(), records=expected))


def test_versions_times_and_columns(case: Any) -> None:
    case.append(rows(0, 3))
    first, between = case.version(), datetime.datetime.now(datetime.UTC)
    case.append(rows(3, 6))
    assert [row["i"] for row in read(case.at(first))] == [0, 1, 2]
    assert [row["i"] for row in read(case.source().as_of(between).build())] == [0, 1, 2]
    assert sorted(map(str, read(case.source().select("text").build()))) == [f"{{'text': '{i}'}}" for i in range(6)]
    assert {row.text for row in read(case.source().as_rows().build())} == set("012345")
    assert sum(batch.num_rows for batch in read(case.source().as_batches().build())) == 6
    with pytest.raises(HeadwaterError, match="has no"):
        case.at(12345)


def test_columns_that_older_files_lack(case: Any) -> None:
    case.append(rows(0, 1))
    case.append(pa.table({"i": [1], "text": ["x"], "price": [1.5]}))
    assert sorted(read(case.source().build()), key=lambda row: row["i"]) == [
        {"i": 0, "text": "0", "price": None},
        {"i": 1, "text": "x", "price": 1.5},
    ]


def test_iceberg_columns_that_were_renamed(tmp_path: Path) -> None:
    case = CASES["iceberg"](tmp_path / "lake")
    plain_sink(case)
    case.append(rows(0, 1))
    with case.table.update_schema() as update:
        update.rename_column("text", "words")
    assert read(case.source().build()) == [{"i": 0, "words": "0"}]


class TestFollowing:
    def test_later_versions_are_found_once(self, case: Any) -> None:
        source = case.source().follow(10).build()
        known = {split.split_id for split in source.discover_splits(2, frozenset())}
        case.append(rows(0, 2))
        case.append(rows(2, 4))
        found = case.source().follow(10).build().discover_splits(2, frozenset(known))
        assert [row["i"] for row in read(source, found)] == [0, 1, 2, 3]
        known |= {split.split_id for split in found}
        assert source.discover_splits(2, frozenset(known)) == []

    def test_deleted_rows_are_an_error_or_skipped(self, case: Any) -> None:
        case.append(rows(0, 4))
        builder = case.source().follow(10)
        known = {split.split_id for split in builder.build().discover_splits(2, frozenset())}
        case.delete("i = 1")
        case.append(rows(4, 5))
        with pytest.raises(CheckpointError, match=r"skip_changes\(\)"):
            builder.build().discover_splits(2, frozenset(known))
        source = builder.skip_changes().build()
        assert [row["i"] for row in read(source, source.discover_splits(2, frozenset(known)))] == [4]

    def test_a_job_follows_and_survives(self, case: Any) -> None:
        sink = CollectingSink()
        case.append(rows(0, 50))

        def run() -> Any:
            env = StreamExecutionEnvironment.get_execution_environment()
            env.set_parallelism(2)
            source = case.source().follow(10).build()
            env.from_source(source, WatermarkStrategy.no_watermarks(), "table").sink_to(sink)
            return env.execute_async("follow")

        with in_process(epoch_records=10) as here:
            here.crash_job(epoch=2, at="manifest-written")
            with pytest.raises(JobCrashed):
                run().get_job_execution_result().result()
            case.append(rows(50, 80))
            job = run()
            wait_until(lambda: len(sink.results()) >= 80, "what is there is read")
            case.append(rows(80, 90))
            wait_until(lambda: len(sink.results()) >= 90, "what is added is read")
            job.cancel()
        assert sorted(row["i"] for row in sink.results()) == list(range(90))


def test_delta_versions_that_left_the_log(tmp_path: Path) -> None:
    case = CASES["delta"](tmp_path / "lake")
    plain_sink(case)
    source = case.source().follow(10).build()
    known = frozenset(split.split_id for split in source.discover_splits(1, frozenset()))
    case.append(rows(0, 1))
    case.append(rows(1, 2))
    (Path(case.path) / "_delta_log" / f"{1:020d}.json").rename(tmp_path / "gone")
    with pytest.raises((CheckpointError, Exception), match=r"no longer in its log|gap|log"):
        source.discover_splits(1, known)


def test_delta_reorganisation_is_skipped(tmp_path: Path) -> None:
    from deltalake import DeltaTable

    case = CASES["delta"](tmp_path / "lake")
    plain_sink(case)
    case.append(rows(0, 1))
    case.append(rows(1, 2))
    source = case.source().follow(10).build()
    known = frozenset(split.split_id for split in source.discover_splits(1, frozenset()))
    DeltaTable(case.path).optimize.compact()
    case.append(rows(2, 3))
    assert [row["i"] for row in read(source, source.discover_splits(1, known))] == [2]
