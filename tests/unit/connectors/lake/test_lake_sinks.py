"""Sinks of Delta and Iceberg: the contract, crashes, other writers, partitions, new columns, small files."""

from __future__ import annotations

import datetime
import shutil
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headwater.common import Configuration, Types, WatermarkStrategy
from headwater.common.connector import CommitterContext, WriterContext
from headwater.common.errors import CheckpointError, ConfigurationError, SerializationError
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.testing import SINK_CHECKS, STEPS, JobCrashed, SinkCase, in_process
from tests.unit.connectors.lake.tables import CASES, SCHEMA, plain_sink


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return CASES[request.param](tmp_path / "lake")


@pytest.mark.parametrize("check", SINK_CHECKS, ids=lambda check: str(check.__name__))
def test_contract(check: Callable[[SinkCase], None], case: Any) -> None:
    check(SinkCase(plain_sink(case), case.rows, whole_epochs=True))


def run(sink: Any, count: int = 200, rate: float | None = None, start: Path | None = None) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    if start is not None:
        env.configure(Configuration.from_dict({"execution.state-recovery.path": str(start)}))
    source = DataGeneratorSource(lambda i: {"i": i, "text": str(i)}, count=count, rate_per_second=rate)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    numbers.key_by(lambda row: row["i"]).reduce(lambda one, other: other).sink_to(sink)
    env.execute("to the lake")


def counted(case: Any) -> Counter[int]:
    return Counter(row["i"] for row in case.rows())


@pytest.mark.parametrize("step", STEPS)
def test_crashes_of_the_whole_job(case: Any, step: str) -> None:
    with in_process(epoch_records=20) as here:
        here.crash_job(epoch=2, at=step)
        here.crash_job(epoch=3, at=step)
        here.fail_commit(times=1)
        for _ in range(2):
            with pytest.raises(JobCrashed):
                run(plain_sink(case), 100)
        run(plain_sink(case), 100)
    assert counted(case) == Counter(range(100))


@pytest.mark.parametrize("step", ["acked", "manifest-written", "sink-committed"])
def test_output_of_several_checkpoints_becomes_one_version(case: Any, step: str) -> None:
    def sink() -> Any:
        return case.sink().set_schema(SCHEMA).set_min_commit_interval(10_000).build()

    with in_process(epoch_records=10) as here:
        here.crash_job(epoch=3, at=step)
        here.crash_job(epoch=9, at=step)
        for _ in range(2):
            with pytest.raises(JobCrashed):
                run(sink(), 400, 10)
        run(sink(), 400, 10)  # 40 s
    assert counted(case) == Counter(range(400))
    assert case.commits() <= 6
    assert case.files() == case.commits(), "small files are joined"


@pytest.mark.parametrize("at", ["manifest-written", "sink-committed"])
@pytest.mark.parametrize("interval_ms", [0, 100_000])
def test_another_job_that_starts_from_its_checkpoint(case: Any, tmp_path: Path, at: str, interval_ms: int) -> None:
    def sink() -> Any:
        return case.sink().set_schema(SCHEMA).set_min_commit_interval(interval_ms).build()

    with in_process(tmp_path / "first", epoch_records=10) as here:
        here.crash_job(epoch=6, at=at)
        with pytest.raises(JobCrashed):
            run(sink(), 200, 10)
    (checkpoint,) = (tmp_path / "first" / "manifests").glob("*6.manifest")
    with in_process(tmp_path / "second", epoch_records=10):
        run(sink(), 200, 10, start=checkpoint)
    assert counted(case) == Counter(range(200))


def test_a_job_whose_checkpoints_were_deleted_begins_anew_and_nothing_is_swallowed(case: Any, tmp_path: Path) -> None:
    """It has the same id, and counts its epochs from the beginning: an old mark must not count for it."""
    written: list[int] = []
    for _ in range(2):
        with in_process(tmp_path / "c", epoch_records=20) as here:
            here.crash_job(epoch=3, at="sink-committed")
            with pytest.raises(JobCrashed):
                run(plain_sink(case), 100)
        written.append(len(case.rows()))
        shutil.rmtree(tmp_path / "c")
    assert written == [80, 160]


def committer_of(sink: Any, job: str = "job") -> Any:
    committer = sink.create_committer()
    committer.open(CommitterContext(job, "sink", "sink"))
    return committer


def write(sink: Any, rows: list[Any], epoch: int = 0, job: str = "job") -> list[Any]:
    writer = sink.create_writer(WriterContext(job, "sink", 0, 1, f"{epoch}-0", epoch))
    writer.write_batch(rows, None)
    return writer.prepare_commit()


def test_other_writers_at_the_same_time(case: Any) -> None:
    sink = plain_sink(case)
    errors: list[BaseException] = []

    def writer(number: int) -> None:
        try:
            committer = committer_of(sink, f"job{number}")
            for epoch in range(5):
                row = {"i": number * 10 + epoch, "text": "x"}
                files = write(sink, [row], epoch, f"job{number}")
                committer.commit(files)
                committer.commit(files)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=writer, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert counted(case) == Counter(number * 10 + epoch for number in range(4) for epoch in range(5))


def test_a_driver_that_wakes_up_late_adds_nothing(case: Any) -> None:
    """It has read the table, and found no mark; another driver commits before it does."""
    sink = plain_sink(case)
    files = write(sink, [{"i": 1, "text": "x"}])
    late, next_driver = committer_of(sink), committer_of(sink)
    append = late.append

    def slow(*arguments: Any) -> None:
        late.append = append
        next_driver.commit(files)
        append(*arguments)

    late.append = slow
    late.commit(files)
    assert counted(case) == Counter([1])


def test_a_late_driver_does_not_touch_joined_files(case: Any) -> None:
    sink = case.sink().set_schema(SCHEMA).set_min_commit_interval(1000).build()
    files = write(sink, [{"i": 1, "text": "x"}]) + write(sink, [{"i": 2, "text": "y"}])
    late, next_driver = committer_of(sink), committer_of(sink)
    joined = late._joined

    def slow(files: list[Any]) -> Any:
        next_driver.commit(files)
        return joined(files)

    late._joined = slow
    with pytest.raises(FileNotFoundError):
        late.commit(files)
    late.commit(files)
    assert counted(case) == Counter([1, 2])


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_a_data_file_that_is_gone_or_changed_is_an_error(case: Any, damage: str, tmp_path: Path) -> None:
    sink = plain_sink(case)
    files = write(sink, [{"i": 1, "text": "x"}])
    (path,) = tmp_path.rglob(files[0].path)
    path.unlink() if damage == "gone" else path.write_bytes(b"PAR1")
    with pytest.raises(CheckpointError, match=r"is gone|its manifest says"):
        committer_of(sink).commit(files)
    assert case.rows() == []


def test_partitions(case: Any) -> None:
    schema = pa.schema([("i", pa.int64()), ("country", pa.string()), ("day", pa.date32())])
    sink = case.sink().set_schema(schema).partition_by("country", "day").build()
    day = datetime.date(2026, 1, 2)
    rows = [{"i": i, "country": ("se", "a b/ö", None)[i % 3], "day": day} for i in range(9)]
    committer_of(sink).commit(write(sink, rows))
    assert sorted(case.rows(), key=lambda row: row["i"]) == rows
    assert case.files() == 3
    source = case.source().build()
    found = [row for split in source.discover_splits(1, frozenset()) for row in _read(source, split)]
    assert sorted(found, key=lambda row: row["i"]) == rows
    with pytest.raises(ConfigurationError, match="is partitioned by"):
        case.sink().partition_by("i").build()


def _read(source: Any, split: Any) -> list[Any]:
    reader = source.open_reader(split, None)
    records: list[Any] = []
    while (batch := reader.read_batch(100)) is not None:
        records += batch
    return records


def test_iceberg_partitions_by_transforms(tmp_path: Path) -> None:
    from pyiceberg.transforms import BucketTransform, DayTransform

    case = CASES["iceberg"](tmp_path / "lake")
    schema = pa.schema([("i", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    case.sink().set_schema(schema).build()
    with case.table.update_spec() as update:
        update.add_field("at", DayTransform(), "at_day")
    sink = case.sink().build()
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    rows = [{"i": i, "at": start + datetime.timedelta(hours=12 * i)} for i in range(6)]
    committer_of(sink).commit(write(sink, rows))
    assert case.files() == 3 and counted(case) == Counter(range(6))
    with case.table.update_spec() as update:
        update.add_field("i", BucketTransform(4), "i_bucket")
    with pytest.raises(ConfigurationError, match=r"partitioned by bucket"):
        case.sink().build()


def test_new_columns(case: Any) -> None:
    committer_of(plain_sink(case)).commit(write(plain_sink(case), [{"i": 1, "text": "x"}]))
    wider = pa.schema([*SCHEMA, pa.field("price", pa.float64())])
    with pytest.raises(ConfigurationError, match=r"no column 'price'.*add_new_columns"):
        case.sink().set_schema(wider).build()
    sink = case.sink().set_schema(wider).add_new_columns().build()
    committer_of(sink).commit(write(sink, [{"i": 2, "text": "y", "price": 1.5}], 1))
    committer_of(sink).commit(write(sink, [{"i": 3, "text": "z", "price": None}], 2))
    narrow = case.sink().set_schema(pa.schema([("i", pa.int64())])).build()
    committer_of(narrow).commit(write(narrow, [{"i": 4}], 3))
    assert sorted((row["i"], row["text"], row["price"]) for row in case.rows()) == [
        (1, "x", None),
        (2, "y", 1.5),
        (3, "z", None),
        (4, None, None),
    ]


def test_record_batches_and_large_output(case: Any) -> None:
    sink = case.sink().set_schema(SCHEMA).set_target_file_size(100_000).set_compression("none").build()
    batch = pa.RecordBatch.from_pydict({"text": ["x" * 20] * 60_000, "i": list(range(60_000))})
    committer_of(sink).commit(write(sink, [batch, batch]))
    assert len(case.rows()) == 120_000 and case.files() == 2


def test_what_does_not_fit_is_named(case: Any) -> None:
    sink = plain_sink(case)
    with pytest.raises(SerializationError, match=r"field 'i' is int64, found str 'x'"):
        write(sink, [{"i": "x", "text": "y"}])
    with pytest.raises(SerializationError, match="does not have the columns"):
        write(sink, [{"i": 1}])
    with pytest.raises(SerializationError, match="does not fit the table's"):
        write(sink, [pa.RecordBatch.from_pydict({"i": [1]})])


def test_bad_settings(case: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"set_schema\(...\) to create it"):
        case.sink().build()
    with pytest.raises(ConfigurationError, match=r"no Delta table|no Iceberg table"):
        case.source().build()
    with pytest.raises(ConfigurationError, match="'nowhere' is not in"):
        case.sink().set_schema(SCHEMA).partition_by("nowhere").build()
    with pytest.raises(ConfigurationError, match="more than 0 bytes"):
        case.sink().set_target_file_size(0)
    case.sink().set_schema(Types.ROW_NAMED(["i"], [Types.LONG()])).build()
    with pytest.raises(ConfigurationError, match=r"no column 'x'; it has \['i'\]"):
        case.source().select("x").build()


def test_a_missing_library_is_named(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in [name for name in sys.modules if name.partition(".")[0] in ("deltalake", "pyiceberg")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "deltalake", None)
    monkeypatch.setitem(sys.modules, "pyiceberg", None)
    with pytest.raises(ConfigurationError, match=rf"headwater\[{case.kind}\]"):
        case.sink().set_schema(SCHEMA).build()
