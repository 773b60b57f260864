"""Sources and sinks in whole jobs."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headwater.common import Encoder, Row, Types, WatermarkStrategy
from headwater.datastream import SinkFunction, SourceFunction, StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource, RateLimiterStrategy
from headwater.datastream.connectors.file_system import BulkFormat, BulkWriters, FileSink, FileSource, StreamFormat
from headwater.datastream.connectors.number_seq import NumberSequenceSource
from headwater.testing import CollectingSink
from tests.spark.harness import JobRunner, epochs_of, progress
from tests.waiting import wait_until

NO_WATERMARKS = WatermarkStrategy.no_watermarks()
ROWS = [{"name": f"n{number}", "amount": number} for number in range(50)]


def write_text(directory: Path) -> Any:
    (directory / "a.txt").write_text("".join(f"{row['name']}\n" for row in ROWS[:30]))
    (directory / "b.txt").write_text("".join(f"{row['name']}\n" for row in ROWS[30:]))
    return FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(directory))


def write_json(directory: Path) -> Any:
    (directory / "a.json").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return FileSource.for_record_stream_format(StreamFormat.json_lines_format(), str(directory))


def write_csv(directory: Path) -> Any:
    (directory / "a.csv").write_text("name,amount\n" + "".join(f"{r['name']},{r['amount']}\n" for r in ROWS))
    csv = StreamFormat.csv_format(converters={"amount": int})
    return FileSource.for_record_stream_format(csv, str(directory / "*.csv"))


def write_parquet(directory: Path) -> Any:
    pq.write_table(pa.Table.from_pylist(ROWS), directory / "a.parquet", row_group_size=20)
    return FileSource.for_bulk_file_format(BulkFormat.parquet_format(), str(directory))


@pytest.mark.parametrize(
    ("write", "expected"),
    [(write_text, [row["name"] for row in ROWS]), (write_json, ROWS), (write_csv, ROWS), (write_parquet, ROWS)],
    ids=["text", "json", "csv", "parquet"],
)
def test_files(run_job: JobRunner, tmp_path: Path, write: Any, expected: list[Any]) -> None:
    directory = tmp_path / "input"
    directory.mkdir()
    source = write(directory).build()
    found = run_job(lambda env: env.from_source(source, NO_WATERMARKS, "files"), 2, **epochs_of(20))
    assert sorted(map(str, found)) == sorted(map(str, expected))


def test_read_text_file(run_job: JobRunner, tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("one\ntwo\nthree")
    assert run_job(lambda env: env.read_text_file(str(path)).map(str.upper), 1) == ["ONE", "TWO", "THREE"]


def test_a_watched_directory_gives_new_files_once(run_job: JobRunner, tmp_path: Path) -> None:
    directory = tmp_path / "watched"
    directory.mkdir()
    (directory / "first.txt").write_text("1\n2\n")
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(directory))
    watched = source.monitor_continuously(50).build()
    checkpoints = run_job.checkpoint_dir()

    def build(env: StreamExecutionEnvironment) -> Any:
        return env.from_source(watched, NO_WATERMARKS, "watched").key_by(lambda line: 0).reduce(lambda a, b: f"{a},{b}")

    settings = {"headwater.epoch.duration": 50}
    with build(run_job.environment(2, checkpoints, **settings)).execute_and_collect() as results:
        assert [next(results), next(results)] == ["1", "1,2"]
        (directory / ".hidden").write_text("3\n")
        (directory / ".hidden").rename(directory / "second.txt")
        assert next(results) == "1,2,3"
        progress(results.get_job_client())
    # Started again, it remembers which files it has read, and finds the one that came in between.
    (directory / "third.txt").write_text("4\n")
    with build(run_job.environment(2, checkpoints, **settings)).execute_and_collect() as results:
        found = next(results)
        while found != "1,2,3,4":  # the last epoch's output is committed again after a restart
            assert found in ("1", "1,2", "1,2,3")
            found = next(results)
        progress(results.get_job_client())


def test_number_sequence(run_job: JobRunner) -> None:
    source = NumberSequenceSource(5, 104)
    found = run_job(lambda env: env.from_source(source, NO_WATERMARKS, "numbers"), 2, **epochs_of(30))
    assert Counter(found) == Counter(range(5, 105))
    assert run_job(lambda env: env.from_sequence(1, 10), 1) == list(range(1, 11))


def test_a_generator_keeps_to_its_rate(run_job: JobRunner) -> None:
    source = DataGeneratorSource(lambda index: index * index, 60, RateLimiterStrategy.per_second(60))
    env = run_job.environment(2, **{"headwater.epoch.duration": 100})
    with env.from_source(source, NO_WATERMARKS, "generator").execute_and_collect() as results:
        first = next(results)
        started = time.monotonic()
        found = [first, *results]
        took = time.monotonic() - started
    assert Counter(found) == Counter(index * index for index in range(60))
    # The first epoch may take what came due until then; the rest has to come by the clock.
    assert took > 0.4


def test_functions_as_source_and_sink(run_job: JobRunner, tmp_path: Path) -> None:
    class Countdown(SourceFunction):
        def run(self) -> Any:
            yield from range(50, 0, -1)

    class Append(SinkFunction):
        def __init__(self, path: str) -> None:
            self.path = path

        def invoke(self, value: Any) -> None:
            with open(self.path, "a") as file:
                file.write(f"{value}\n")

    assert run_job(lambda env: env.add_source(Countdown()), 1, **epochs_of(20)) == list(range(50, 0, -1))

    def letters() -> Any:
        yield from "abc"

    env = run_job.environment(1)
    env.add_source(letters).add_sink(Append(str(tmp_path / "sunk")))
    env.execute()
    assert (tmp_path / "sunk").read_text().split() == ["a", "b", "c"]


def test_a_batch_dataframe(run_job: JobRunner) -> None:
    run_job(lambda env: env.from_collection([1]))  # Spark is there now
    from pyspark.sql import SparkSession

    frame = SparkSession.builder.getOrCreate().range(0, 100, 1, 3).selectExpr("id", "id % 7 as rest")

    def build(env: StreamExecutionEnvironment) -> Any:
        rows = env.from_dataframe(frame)
        return rows.map(lambda row: (row.rest, row["id"])).key_by(lambda pair: pair[0]).sum(1)

    found = run_job(build, 2)
    assert len(found) == 100
    totals = {rest: max(total for of, total in found if of == rest) for rest in range(7)}
    assert totals == {rest: sum(range(rest, 100, 7)) for rest in range(7)}


def visible(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file() and not path.name.startswith("."))


def test_file_sinks(run_job: JobRunner, tmp_path: Path) -> None:
    """One job with three of them; nothing is visible that is not whole, and nothing stays hidden."""
    env = run_job.environment(2, **epochs_of(20))
    rows = env.from_collection([Row(name=row["name"], amount=row["amount"]) for row in ROWS]).rebalance()
    rows.map(lambda row: row.name).sink_to(
        FileSink.for_row_format(str(tmp_path / "text"), Encoder.simple_string_encoder()).build()
    )
    as_dict = rows.map(lambda row: row.as_dict())
    as_dict.sink_to(FileSink.for_bulk_format(str(tmp_path / "json"), BulkWriters.json_lines()).build())
    as_dict.sink_to(FileSink.for_bulk_format(str(tmp_path / "parquet"), BulkWriters.parquet()).build())
    env.execute()
    lines = [line for path in visible(tmp_path / "text") for line in path.read_text().splitlines()]
    assert Counter(lines) == Counter(row["name"] for row in ROWS)
    parsed = [json.loads(line) for path in visible(tmp_path / "json") for line in path.read_text().splitlines()]
    assert sorted(parsed, key=lambda row: row["amount"]) == ROWS
    tables = [row for path in visible(tmp_path / "parquet") for row in pq.read_table(path).to_pylist()]
    assert sorted(tables, key=lambda row: row["amount"]) == ROWS
    hidden = [path for path in tmp_path.rglob(".*") if path.is_file() and "checkpoints" not in str(path)]
    assert hidden == []


def test_output_appears_while_the_job_runs_and_only_whole_epochs(run_job: JobRunner, tmp_path: Path) -> None:
    sink = CollectingSink(str(tmp_path / "collected"))
    env = run_job.environment(2, **epochs_of(10))
    release = tmp_path / "release"

    def numbers() -> Any:
        yield from range(20)
        wait_until(release.exists, "the test")
        yield from range(20, 30)

    env.add_source(numbers).rebalance().map(lambda n: n).sink_to(sink)
    client = env.execute_async()
    deadline = time.monotonic() + 60
    while len(sink.results()) < 20 and time.monotonic() < deadline:
        assert len(sink.results()) % 10 == 0
        time.sleep(0.05)
    assert Counter(sink.results()) == Counter(range(20))
    release.touch()
    client.get_job_execution_result().result()
    assert Counter(sink.results()) == Counter(range(30))


def test_print_prefixes(run_job: JobRunner, capfd: pytest.CaptureFixture[str]) -> None:
    env = run_job.environment(1)
    env.from_collection([("a", 1)], Types.TUPLE([Types.STRING(), Types.INT()])).print()
    env.from_collection([("a", 1), Row("b", 2)]).print()  # Python objects, as Python shows them
    env.execute()
    assert sorted(capfd.readouterr().out.splitlines()) == ["('a', 1)", "(a,1)", "+I[b, 2]"]

    env = run_job.environment(2)
    env.from_collection(range(4)).rebalance().map(lambda n: n).print()
    env.execute()
    assert sorted(capfd.readouterr().out.splitlines()) == ["1> 0", "1> 2", "2> 1", "2> 3"]

    env = run_job.environment(2)
    env.from_collection(range(2)).rebalance().map(lambda n: n).print("name")
    env.execute()
    assert sorted(capfd.readouterr().out.splitlines()) == ["name:1> 0", "name:2> 1"]
