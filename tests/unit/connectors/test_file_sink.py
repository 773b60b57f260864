"""FileSink: names, buckets, formats and what bad input gets. Exactly-once is in the contract suite."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow
import pyarrow.parquet
import pytest

from headwater.common.connector import WriterContext
from headwater.common.errors import CheckpointError, ConfigurationError, LocalDiskError, SerializationError
from headwater.common.serialization import Encoder
from headwater.common.types import Row
from headwater.datastream.connectors.file_system import (
    BucketAssigner,
    BulkWriterFactory,
    BulkWriters,
    FileSink,
    OutputFileConfig,
    RollingPolicy,
)

LINES = Encoder.simple_string_encoder()
FLAT = BucketAssigner.base_path_bucket_assigner()


def context(epoch: int = 3) -> WriterContext:
    return WriterContext("job", "files", 1, 2, f"{epoch}-0", epoch, now_ms=1_700_000_000_000)


def publish(sink: FileSink, values: list[Any], timestamps: list[int | None] | None = None) -> list[Any]:
    writer = sink.create_writer(context())
    writer.write_batch(values, timestamps)
    committables = writer.prepare_commit()
    writer.make_durable()
    committer = sink.create_committer()
    committer.commit(committables)
    committer.delete_leftovers(committer.find_leftovers("job"))
    return committables


def contents(base: Path) -> dict[str, str]:
    return {str(path.relative_to(base).parent): path.read_text() for path in base.rglob("*") if path.is_file()}


def bulk(base: Path, factory: BulkWriterFactory) -> FileSink:
    return FileSink.for_bulk_format(str(base), factory).with_bucket_assigner(FLAT).build()


class TestNames:
    def test_prefix_and_suffix(self, tmp_path: Path) -> None:
        config = OutputFileConfig.builder().with_part_prefix("pay").with_part_suffix(".txt").build()
        assert (config.get_part_prefix(), config.get_part_suffix()) == ("pay", ".txt")
        builder = FileSink.for_row_format(str(tmp_path), LINES).with_bucket_assigner(FLAT)
        publish(builder.with_output_file_config(config).build(), ["a"])
        (name,) = os.listdir(tmp_path)
        assert name.startswith("pay-1-3-") and name.endswith("-0.txt")

    def test_pending_files_are_hidden(self, tmp_path: Path) -> None:
        writer = (
            FileSink.for_row_format(str(tmp_path), LINES).with_bucket_assigner(FLAT).build().create_writer(context())
        )
        writer.write_batch(["a"], None)
        writer.prepare_commit()
        (name,) = os.listdir(tmp_path)
        assert name.startswith(".part-1-3-0-") and name.endswith(".inprogress")

    def test_a_new_bucket_survives_a_power_cut(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whoever can find the file must find its directory, too."""
        synced: list[str] = []
        real = os.open

        def spy(path: Any, flags: int, *more: Any, **named: Any) -> int:
            if flags & os.O_DIRECTORY:
                synced.append(str(path))
            return real(path, flags, *more, **named)

        builder = FileSink.for_row_format(str(tmp_path / "out"), LINES)
        sink = builder.with_bucket_assigner(BucketAssigner.of(lambda value: f"a/{value}")).build()
        writer = sink.create_writer(context())
        monkeypatch.setattr(os, "open", spy)
        writer.write_batch(["b", "c"], None)
        assert set(synced) == {str(tmp_path), str(tmp_path / "out"), str(tmp_path / "out/a")}
        writer.prepare_commit()
        writer.make_durable()
        assert set(synced[-2:]) == {str(tmp_path / "out/a/b"), str(tmp_path / "out/a/c")}
        synced.clear()
        writer.begin_epoch(context(4))
        writer.write_batch(["b"], None)
        writer.prepare_commit()
        writer.make_durable()
        assert synced == [str(tmp_path / "out/a/b")], "what is there already costs nothing"

    def test_a_file_is_begun_anew_at_its_size(self, tmp_path: Path) -> None:
        builder = FileSink.for_row_format(str(tmp_path), LINES).with_bucket_assigner(FLAT)
        sink = builder.with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=10)).build()
        writer = sink.create_writer(context())
        for number in range(6):
            writer.write_batch([f"line {number}"], None)
        assert len(writer.prepare_commit()) == 3
        builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        writer = builder.build().create_writer(context())
        for number in range(6):
            writer.write_batch([f"line {number}"], None)
        assert len(writer.prepare_commit()) == 1

    def test_settings_without_effect_say_so(self, tmp_path: Path) -> None:
        with pytest.warns(UserWarning, match="no effect"):
            FileSink.for_row_format(str(tmp_path), LINES).with_bucket_check_interval(5)

    def test_bad_settings_are_refused_when_the_sink_is_built(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        builder: Any = FileSink.for_row_format(str(tmp_path), LINES)
        for refused, expected in [
            (lambda: builder.with_rolling_policy(5), "with_rolling_policy got 5; expected RollingPolicy"),
            (lambda: builder.with_bucket_assigner("day"), "got 'day'; expected BucketAssigner"),
            (lambda: builder.with_output_file_config(builder), "expected OutputFileConfig; did you forget build"),
            (lambda: FileSink.for_row_format("", LINES), "is not a path"),
            (lambda: builder.with_storage_options({"key": "k"}), "has no storage options"),
            (lambda: FileSink.for_row_format(str(tmp_path), print), "expected an Encoder"),  # type: ignore[arg-type]
            (lambda: FileSink.for_bulk_format(str(tmp_path), "csv"), "BulkWriters"),  # type: ignore[arg-type]
            (lambda: FileSink.for_row_format(str(tmp_path / "file"), LINES).build(), "is a file"),
            (lambda: OutputFileConfig("a/b"), "part prefix 'a/b'"),
            (lambda: OutputFileConfig("part", "/../x"), "part suffix"),
            (lambda: RollingPolicy.default_rolling_policy(part_size=0), "part_size is 0"),
        ]:
            with pytest.raises(ConfigurationError, match=expected):
                refused()


class TestBuckets:
    def test_by_default_one_per_hour(self, tmp_path: Path) -> None:
        builder = FileSink.for_row_format(str(tmp_path), LINES)
        publish(
            builder.with_bucket_assigner(BucketAssigner.date_time_bucket_assigner(timezone_id="UTC")).build(), ["a"]
        )
        assert contents(tmp_path) == {"2023-11-14--22": "a\n"}
        assert FileSink.for_row_format(str(tmp_path), LINES).build().create_writer(context()) is not None

    def test_by_fields(self, tmp_path: Path) -> None:
        sink = FileSink.for_row_format(str(tmp_path), LINES)
        sink = sink.with_bucket_assigner(BucketAssigner.by_fields("country", "n"))
        publish(sink.build(), [{"country": "s/e", "n": 1}, Row(country=None, n=2)])
        assert set(contents(tmp_path)) == {"country=s%2Fe/n=1", "country=__HIVE_DEFAULT_PARTITION__/n=2"}
        with pytest.raises(SerializationError, match="has no fields"):
            publish(sink.build(), [{"country": "se"}])
        with pytest.raises(ConfigurationError, match="names of fields"):
            BucketAssigner.by_fields()

    def test_by_event_time(self, tmp_path: Path) -> None:
        assigner = BucketAssigner.event_time_bucket_assigner("yyyy/MM/dd", "GMT+02:00")
        sink = FileSink.for_row_format(str(tmp_path), LINES).with_bucket_assigner(assigner).build()
        publish(sink, ["a", "b", "c"], [0, 86_400_000 - 7_200_001, 86_400_000 - 7_200_000])
        assert contents(tmp_path) == {"1970/01/01": "a\nb\n", "1970/01/02": "c\n"}
        with pytest.raises(ConfigurationError, match="without a timestamp"):
            publish(sink, ["a"], None)

    def test_java_patterns(self) -> None:
        def bucket(pattern: str) -> str | None:
            assigner = BucketAssigner.date_time_bucket_assigner(pattern, "America/New_York")
            return assigner.bucket_of_all(1_700_000_000_000)

        assert bucket("'day='yyyy-MM-dd/'100% o''clock 'HH:mm:ss") == "day=2023-11-14/100% o'clock 17:13:20"
        for pattern in ("yyyy-ww", "yyyy 'open"):
            with pytest.raises(ConfigurationError, match="date pattern"):
                bucket(pattern)
        with pytest.raises(ConfigurationError, match="time zone 'Mars/Olympus'"):
            BucketAssigner.date_time_bucket_assigner(timezone_id="Mars/Olympus")

    @pytest.mark.parametrize("bucket", ["..", "../x", "/etc", "a//b", "a/../..", ".hidden", "a/.b", "a\0", None, 3])
    def test_no_bucket_leaves_the_directory_or_hides(self, tmp_path: Path, bucket: Any) -> None:
        sink = FileSink.for_row_format(str(tmp_path / "out"), LINES)
        with pytest.raises(ConfigurationError, match="not a relative directory name"):
            publish(sink.with_bucket_assigner(BucketAssigner.of(lambda _: bucket)).build(), ["a"])
        assert list(tmp_path.rglob("*")) == []


class TestFormats:
    def test_json_lines(self, tmp_path: Path) -> None:
        publish(bulk(tmp_path, BulkWriters.json_lines()), [{"a": "ä"}, Row(a=1, b=None), Row(1, 2), (1, "x"), None])
        assert contents(tmp_path) == {".": '{"a":"ä"}\n{"a":1,"b":null}\n[1,2]\n[1,"x"]\nnull\n'}
        with pytest.raises(SerializationError, match="not a JSON value: <object"):
            publish(bulk(tmp_path, BulkWriters.json_lines()), [1, object()])

    def test_csv(self, tmp_path: Path) -> None:
        class Pair(NamedTuple):
            a: int
            b: str

        values = [Pair(1, 'x,"y"'), Row(b="named", a=2), {"b": None, "a": 3}, (4, "plain")]
        publish(bulk(tmp_path / "names", BulkWriters.csv()), values)
        assert contents(tmp_path / "names") == {".": 'a,b\n1,"x,""y"""\n2,named\n3,\n4,plain\n'}
        publish(bulk(tmp_path / "none", BulkWriters.csv(delimiter=";")), [(1, 2), (3,), "text"])
        assert contents(tmp_path / "none") == {".": "1;2\n3\ntext\n"}
        publish(bulk(tmp_path / "columns", BulkWriters.csv(["x", "y"], header=False)), [{"y": 2, "x": 1}])
        assert contents(tmp_path / "columns") == {".": "1,2\n"}
        for bad in ({"a": 1}, (1,), {"a": 1, "c": 2}):
            with pytest.raises(SerializationError, match=r"does not have the columns \['a', 'b'\]"):
                publish(bulk(tmp_path / "bad", BulkWriters.csv(["a", "b"])), [{"a": 1, "b": 2}, bad])

    def test_parquet(self, tmp_path: Path) -> None:
        publish(bulk(tmp_path / "inferred", BulkWriters.parquet()), [{"a": 1, "b": "x"}, Row(a=None, b="y")])
        rows = pyarrow.parquet.read_table(tmp_path / "inferred").to_pylist()
        assert rows == [{"a": 1, "b": "x"}, {"a": None, "b": "y"}]
        schema = pyarrow.schema({"a": pyarrow.int8(), "b": pyarrow.string()})
        publish(bulk(tmp_path / "given", BulkWriters.parquet(schema)), [(1, "x")])
        assert pyarrow.parquet.read_table(tmp_path / "given").schema.equals(schema)
        with pytest.raises(SerializationError, match="Parquet needs column names"):
            publish(bulk(tmp_path, BulkWriters.parquet()), [(1, 2)])
        with pytest.raises(SerializationError, match=r"give BulkWriters\.parquet a schema"):
            publish(bulk(tmp_path, BulkWriters.parquet()), [{"a": 1}, {"a": "text"}])

    def test_a_failed_write_leaves_nothing_after_the_abort(self, tmp_path: Path) -> None:
        writer = bulk(tmp_path, BulkWriters.parquet()).create_writer(context())
        writer.write_batch([{"a": 1}, {"a": "text"}], None)
        with pytest.raises(SerializationError):
            writer.prepare_commit()
        writer.abort()
        assert os.listdir(tmp_path) == []


class TestCommit:
    def prepared(self, base: Path) -> tuple[FileSink, Any]:
        sink = FileSink.for_row_format(str(base), LINES).with_bucket_assigner(FLAT).build()
        writer = sink.create_writer(context())
        writer.write_batch(["a", "b"], None)
        (committable,) = writer.prepare_commit()
        writer.make_durable()
        return sink, committable

    def test_a_file_that_is_gone_is_named(self, tmp_path: Path) -> None:
        sink, committable = self.prepared(tmp_path)
        (tmp_path / committable.pending_name).unlink()
        with pytest.raises(CheckpointError, match=committable.final_name):
            sink.create_committer().commit([committable])

    def test_a_file_that_was_changed_is_not_made_visible(self, tmp_path: Path) -> None:
        sink, committable = self.prepared(tmp_path)
        (tmp_path / committable.pending_name).write_text("a")
        with pytest.raises(CheckpointError, match="has 1 bytes, its manifest says 4"):
            sink.create_committer().commit([committable])
        assert not (tmp_path / committable.final_name).exists()

    def test_nothing_is_overwritten(self, tmp_path: Path) -> None:
        sink, committable = self.prepared(tmp_path)
        (tmp_path / committable.final_name).write_text("somebody else's")
        with pytest.raises(CheckpointError, match="remove one of them"):
            sink.create_committer().commit([committable])
        assert (tmp_path / committable.final_name).read_text() == "somebody else's"

    def test_names_that_are_no_names_are_refused(self, tmp_path: Path) -> None:
        sink, _ = self.prepared(tmp_path)
        with pytest.raises(CheckpointError, match="attempt id"):
            sink.create_writer(WriterContext("job", "files", 0, 1, "../../x", 1))


class TestFullDisk:
    def test_it_is_named_and_nothing_is_left(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full_disk(_: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        sink = FileSink.for_row_format(str(tmp_path), LINES).with_bucket_assigner(FLAT).build()
        publish(sink, ["visible"])
        writer = sink.create_writer(context())
        writer.write_batch(["a"], None)
        monkeypatch.setattr(os, "fsync", full_disk)
        writer.prepare_commit()
        with pytest.raises(LocalDiskError, match=rf"FileSink cannot be written to {tmp_path}: No space .*; make room"):
            writer.make_durable()
        writer.close()
        (name,) = os.listdir(tmp_path)
        assert (tmp_path / name).read_text() == "visible\n"
