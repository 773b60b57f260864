"""FileSink and FileSource in an object store: the contracts, jobs that die, and a prefix that is watched."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoint.storage.fsspec import FsspecStorage
from headwater.checkpoint.storage.retries import RetryPolicy
from headwater.common import Encoder, Types, WatermarkStrategy
from headwater.common.connector import Sink, Source
from headwater.common.errors import CheckpointError, ConfigurationError, ExternalSystemError
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.connectors.delta import DeltaSink, DeltaSource
from headwater.datastream.connectors.file_system import (
    BucketAssigner,
    BulkFormat,
    BulkWriters,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    FileSource,
    FileSourceBuilder,
    RollingPolicy,
    StreamFormat,
)
from headwater.datastream.connectors.iceberg import IcebergSink, IcebergSource
from headwater.testing import SINK_CHECKS, CollectingSink, JobCrashed, SinkCase, in_process
from tests.contract.s3_server import S3Server, s3_server
from tests.waiting import wait_until

LINES = Encoder(lambda record: (json.dumps(record) + "\n").encode())
FLAT = BucketAssigner.base_path_bucket_assigner()


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


class Place:
    """A prefix that nobody else uses."""

    def __init__(self, s3: S3Server) -> None:
        self.url = s3.spec().url
        self.options = s3.options
        self.storage = FsspecStorage(s3.spec().__class__(self.url, s3.options), RetryPolicy())

    def visible(self) -> dict[str, bytes]:
        names = [name for name in self.storage.walk() if not name.rpartition("/")[2].startswith(".")]
        return {name: self.storage.read(name) for name in names}

    def records(self) -> list[Any]:
        return [json.loads(line) for content in self.visible().values() for line in content.splitlines()]


@pytest.fixture
def place(s3: S3Server) -> Place:
    return Place(s3)


def row_sink(place: Place, size: int = 400) -> FileSink:
    builder = FileSink.for_row_format(place.url, LINES).with_storage_options(place.options).with_bucket_assigner(FLAT)
    return builder.with_rolling_policy(RollingPolicy.default_rolling_policy(size, 5_000, 5_000)).build()


@pytest.mark.parametrize("check", SINK_CHECKS, ids=lambda check: str(check.__name__))
def test_contract(check: Callable[[SinkCase], None], place: Place) -> None:
    check(SinkCase(row_sink(place), place.records))


def run(sink: Sink, count: int = 200) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    source = DataGeneratorSource(lambda i: {"i": i}, count=count, rate_per_second=10)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    numbers.key_by(lambda row: row["i"]).reduce(lambda one, other: other).sink_to(sink)
    env.execute("to s3")


@pytest.mark.parametrize("step", ["acked", "manifest-written", "sink-committed"])
def test_parts_roll_over_checkpoints_and_crashes(place: Place, step: str) -> None:
    with in_process(epoch_records=10) as here:
        for epoch in (3, 4):
            here.crash_job(epoch=epoch, at=step)
        for _ in range(2):
            with pytest.raises(JobCrashed):
                run(row_sink(place), 70)
        run(row_sink(place), 70)
    assert Counter(record["i"] for record in place.records()) == Counter(range(70))
    assert len(place.visible()) <= 4
    assert [name for name in place.storage.walk() if name.startswith(".")] == []


def test_compaction_of_parquet(place: Place) -> None:
    strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(2).build()
    builder = FileSink.for_bulk_format(place.url, BulkWriters.parquet()).with_storage_options(place.options)
    builder = builder.with_bucket_assigner(BucketAssigner.of(lambda row: f"mod={row['i'] % 2}"))
    with in_process(epoch_records=20):
        run(builder.enable_compact(strategy, FileCompactor.columnar_file_compactor()).build(), 60)
    assert len(place.visible()) <= 8
    source = FileSource.for_bulk_file_format(BulkFormat.parquet_format(), place.url)
    assert Counter(row["i"] for row in collected(source.set_storage_options(place.options).build())) == Counter(
        range(60)
    )


def test_a_hidden_piece_that_is_gone_is_an_error(place: Place) -> None:
    def damage(job: Any) -> None:
        for name in place.storage.walk():
            place.storage.delete(name)

    with in_process(epoch_records=10) as here:
        here.call(damage, epoch=3, at="begin")
        with pytest.raises(CheckpointError, match=r"gone|cannot be made visible"):
            run(row_sink(place, 100_000))


def collected(source: Source) -> list[Any]:
    sink = CollectingSink()
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(2)
        env.from_source(source, WatermarkStrategy.no_watermarks(), "files").sink_to(sink)
        env.execute("from s3")
    return sink.results()


def test_large_files_of_lines_are_read_in_splits(place: Place) -> None:
    place.storage.copy("", "data/one.txt", "".join(f"line {n}\n" for n in range(1000)).encode())
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(split_bytes=500), f"{place.url}/data")
    built = source.set_storage_options(place.options).build()
    assert len(built.discover_splits(2, frozenset())) > 10
    assert sorted(collected(built)) == sorted(f"line {n}" for n in range(1000))


def test_a_prefix_is_watched(place: Place) -> None:
    place.storage.copy("", "in/a.jsonl", b'{"n": 1}\n{"n": 2}\n')
    sink = CollectingSink()
    builder = FileSource.for_record_stream_format(StreamFormat.json_lines_format(), f"{place.url}/in")
    source = builder.set_storage_options(place.options).monitor_continuously(20).build()
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment()
        env.from_source(source, WatermarkStrategy.no_watermarks(), "files").sink_to(sink)
        job = env.execute_async("watch")
        wait_until(lambda: len(sink.results()) == 2, "the first file is read")
        place.storage.copy("", "in/.hidden", b'{"n": 0}\n')
        place.storage.copy("", "in/b.jsonl", b'{"n": 3}\n')
        wait_until(lambda: len(sink.results()) == 3, "the second file is read")
        job.cancel()
    assert sorted(row["n"] for row in sink.results()) == [1, 2, 3]


def lines_of(place: Place, path: str) -> FileSourceBuilder:
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), path)
    return builder.set_storage_options(place.options)


def test_a_watched_prefix_may_be_empty_at_first_and_become_so_again(place: Place) -> None:
    source = lines_of(place, f"{place.url}/landing").monitor_continuously(20).build()
    assert source.discover_splits(1, frozenset()) == []
    place.storage.copy("", "landing/a.txt", b"1\n")
    (first,) = source.discover_splits(1, frozenset())
    place.storage.delete("landing/a.txt")
    assert source.discover_splits(1, frozenset({first.split_id})) == []
    place.storage.copy("", "landing/b.txt", b"2\n")
    (second,) = source.discover_splits(1, frozenset({first.split_id}))
    assert second.split_id.endswith("landing/b.txt")


def test_what_can_never_come_is_an_error(place: Place) -> None:
    with pytest.raises(ConfigurationError, match="there is nothing at"):
        lines_of(place, f"{place.url}/nothing").build().discover_splits(1, frozenset())
    with pytest.raises(ConfigurationError, match="there is no bucket 'no-such-bucket'"):
        lines_of(place, "s3://no-such-bucket/a").monitor_continuously(20).build().discover_splits(1, frozenset())


def test_a_store_that_is_not_there_is_named() -> None:
    options = {"endpoint_url": "http://127.0.0.1:1", "key": "nobody", "secret": "top-secret"}
    options |= {"config_kwargs": {"retries": {"max_attempts": 0}}}  # type: ignore[dict-item]
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), "s3://nowhere/a")
    source = builder.set_storage_options(options).build()
    with pytest.raises(ExternalSystemError, match=r"cannot list 's3://nowhere/a': .*http://127.0.0.1:1/") as error:
        source.discover_splits(1, frozenset())
    assert "top-secret" not in str(error.value)


def test_patterns(place: Place) -> None:
    for name in ("2026/01/a.txt", "2026/02/b.txt", "2026/02/b.csv", "2027/01/_c.txt", "2027/d.txt"):
        place.storage.copy("", name, f"{name}\n".encode())

    def found(pattern: str) -> list[str]:
        return sorted(collected(lines_of(place, f"{place.url}/{pattern}").build()))

    assert found("2026/*/*.txt") == ["2026/01/a.txt", "2026/02/b.txt"]
    assert found("20?[!6]") == ["2027/d.txt"]
    assert found("**/*.txt") == ["2026/01/a.txt", "2026/02/b.txt", "2027/d.txt"]


def test_an_iceberg_table(s3: S3Server, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S3_TEST_SECRET", "nothing")
    catalogue = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalogue.db",
        "warehouse": place.url,
        "s3.endpoint": f"http://{s3.host}:{s3.port}",
        "s3.access-key-id": "nobody",
        "s3.secret-access-key": "${env:S3_TEST_SECRET}",
        "s3.region": "us-east-1",
    }
    row = Types.ROW_NAMED(["i"], [Types.LONG()])
    with in_process(epoch_records=20) as here:
        here.crash_job(epoch=1, at="manifest-written")
        for crashes in (True, False):
            builder = IcebergSink.for_table("test", "shop.orders", **catalogue).set_schema(row)
            with pytest.raises(JobCrashed) if crashes else contextlib.nullcontext():
                run(builder.build(), 60)
    source = IcebergSource.for_table("test", "shop.orders", **catalogue).build()
    assert Counter(found["i"] for found in collected(source)) == Counter(range(60))


def test_a_delta_table(s3: S3Server, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit is a conditional request; data files go through fsspec, with the same options."""
    monkeypatch.setenv("S3_TEST_SECRET", "nothing")
    options = {
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "${env:S3_TEST_SECRET}",
        "AWS_ENDPOINT_URL": f"http://{s3.host}:{s3.port}",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }
    row = Types.ROW_NAMED(["i"], [Types.LONG()])
    with in_process(epoch_records=20) as here:
        here.crash_job(epoch=1, at="manifest-written")
        for crashes in (True, False):
            builder = DeltaSink.for_table(f"{place.url}/table").set_schema(row).set_storage_options(options)
            with pytest.raises(JobCrashed) if crashes else contextlib.nullcontext():
                run(builder.build(), 60)
    source = DeltaSource.for_table(f"{place.url}/table").set_storage_options(options).build()
    assert Counter(found["i"] for found in collected(source)) == Counter(range(60))
