"""FileSource: finding files, formats, and what bad input gets."""

from __future__ import annotations

import gzip
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from headwater.common.connector import SplitReader, drain
from headwater.common.errors import CheckpointError, ConfigurationError, SerializationError
from headwater.common.serialization import DeserializationSchema
from headwater.common.time import Duration
from headwater.datastream.connectors import file_access
from headwater.datastream.connectors.file_system import BulkFormat, FileSource, StreamFormat

TEXT = StreamFormat.text_line_format()


def source(form: Any, *paths: Path | str, policy: str = "fail") -> FileSource:
    return FileSource.for_record_stream_format(form, *map(str, paths)).set_bad_record_policy(policy).build()


def reader_of(file_source: FileSource, position: Any = None) -> SplitReader:
    (split,) = file_source.discover_splits(1, frozenset())
    return file_source.open_reader(split, position)


def read(file_source: FileSource, batch: int = 100) -> list[Any]:
    reader = reader_of(file_source)
    try:
        return [record for records in drain(reader, batch) for record in records]
    finally:
        reader.close()


def found(file_source: FileSource, known: frozenset[str] = frozenset()) -> list[str]:
    return [os.path.basename(split.split_id) for split in file_source.discover_splits(1, known)]


class Numbers(DeserializationSchema):
    """A user's: raises what Python raises."""

    def deserialize(self, message: bytes) -> int:
        return int(message)


class TestSchemasOfUsers:
    def test_what_they_raise_rejects_the_line(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("1\nno number\n3\n")
        form = StreamFormat.schema_lines_format(Numbers())
        reader = reader_of(source(form, tmp_path).rejecting())  # type: ignore[arg-type]
        assert [record for records in drain(reader, 100) for record in records] == [1, 3]
        (bad,) = reader.rejected()
        reader.close()
        assert bad.raw == b"no number" and bad.where.endswith("a, line 2")
        assert bad.error.startswith("ValueError: invalid literal for int()")
        assert read(source(form, tmp_path, policy="skip")) == [1, 3]

    def test_without_dead_letters_file_and_line_are_named(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("1\nno number\n")
        form = StreamFormat.schema_lines_format(Numbers())
        with pytest.raises(SerializationError, match=r"a, line 2: ValueError: .*no number"):
            read(source(form, tmp_path))


class TestFinding:
    def test_a_watched_directory_gives_new_files_once(self, tmp_path: Path) -> None:
        watched = FileSource.for_record_stream_format(TEXT, str(tmp_path)).monitor_continuously(timedelta(seconds=2))
        file_source = watched.build()
        assert not file_source.bounded and file_source.discovery_interval_ms == 2_000
        assert found(file_source) == []
        (tmp_path / "a").write_text("1\n")
        known = frozenset(split.split_id for split in file_source.discover_splits(1, frozenset()))
        (tmp_path / "b").write_text("2\n")
        assert found(file_source, known) == ["b"]

    def test_the_files_of_a_bounded_source_are_fixed_at_its_first_start(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("1\n")
        file_source = source(TEXT, tmp_path)
        known = frozenset(split.split_id for split in file_source.discover_splits(1, frozenset()))
        (tmp_path / "b").write_text("2\n")
        assert found(file_source, known) == []

    def test_monitoring_can_be_taken_back(self, tmp_path: Path) -> None:
        builder = FileSource.for_record_stream_format(TEXT, str(tmp_path)).monitor_continuously(Duration.of_seconds(1))
        assert builder.process_static_file_set().build().bounded

    def test_patterns_directories_and_files_together_give_each_file_once(self, tmp_path: Path) -> None:
        (tmp_path / "d").mkdir()
        for name in ["d/a.txt", "d/b.txt", "d/c.log", "d/_skipped.txt"]:
            (tmp_path / name).write_text("x\n")
        assert found(source(TEXT, tmp_path / "d/*.txt", tmp_path / "d/a.txt")) == ["a.txt", "b.txt"]
        assert found(source(TEXT, tmp_path / "**/*.txt", f"file://{tmp_path}/d")) == ["a.txt", "b.txt", "c.log"]
        assert found(source(TEXT, f"{tmp_path}/*")) == ["a.txt", "b.txt", "c.log"]

    def test_a_hidden_file_is_read_if_it_is_named(self, tmp_path: Path) -> None:
        (tmp_path / ".hidden").write_text("x\n")
        assert read(source(TEXT, tmp_path / ".hidden")) == ["x"]

    def test_what_is_not_there_is_named(self, tmp_path: Path) -> None:
        for path in (tmp_path / "missing", tmp_path / "*.txt"):
            with pytest.raises(ConfigurationError, match=r"nothing at .*(missing|\*\.txt)"):
                source(TEXT, path).discover_splits(1, frozenset())
        later = FileSource.for_record_stream_format(TEXT, str(tmp_path / "*.txt")).monitor_continuously(5).build()
        assert later.discover_splits(1, frozenset()) == []

    def test_what_may_not_be_read_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def denied(path: str) -> Any:
            raise PermissionError(13, "Permission denied", path)

        monkeypatch.setattr(os, "scandir", denied)
        with pytest.raises(ConfigurationError, match=f"{tmp_path} cannot be read: permission denied"):
            source(TEXT, tmp_path).discover_splits(1, frozenset())

    def test_other_file_systems_are_read_through_pyarrow(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "in/_tmp").mkdir(parents=True)
        (tmp_path / "in/a.txt").write_text("a\nb\nc\n")
        (tmp_path / "in/b.gz").write_bytes(gzip.compress(b"d\n"))
        (tmp_path / "in/_tmp/x.txt").write_text("no\n")

        def local_instead(uri: str) -> tuple[Any, str]:
            return fs.LocalFileSystem(), uri.replace("store://bucket", str(tmp_path))

        monkeypatch.setattr(file_access, "_remote", local_instead)
        file_source = source(TEXT, "store://bucket/in")
        splits = file_source.discover_splits(1, frozenset())
        assert [split.split_id for split in splits] == ["store://bucket/in/a.txt", "store://bucket/in/b.gz"]
        assert file_source.open_reader(splits[0], (2, 1)).read_batch(10) == ["b", "c"]
        assert file_source.open_reader(splits[1], None).read_batch(10) == ["d"]
        with pytest.raises(ConfigurationError, match="nothing at"):
            source(TEXT, "store://bucket/nowhere").discover_splits(1, frozenset())

    def test_an_unknown_file_system_is_named(self) -> None:
        with pytest.raises(ConfigurationError, match="teapot://x"):
            source(TEXT, "teapot://x/y").discover_splits(1, frozenset())


class TestBadSettings:
    def test_they_are_found_when_the_source_is_built(self) -> None:
        with pytest.raises(ConfigurationError, match="at least one path"):
            FileSource.for_record_stream_format(TEXT)
        with pytest.raises(ConfigurationError, match="text_line_format"):
            FileSource.for_record_stream_format("text", "a")  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match="'ignore'"):
            source(TEXT, "a", policy="ignore")
        with pytest.raises(ConfigurationError, match="cannot be read by lines"):
            StreamFormat.text_line_format("UTF-16")
        with pytest.raises(ConfigurationError, match="charset 'klingon' is unknown"):
            StreamFormat.text_line_format("klingon")
        with pytest.raises(ConfigurationError, match="delimiter is 'ab'"):
            StreamFormat.csv_format(delimiter="ab")
        with pytest.raises(ConfigurationError, match="discovery_interval"):
            FileSource.for_record_stream_format(TEXT, "a").monitor_continuously(0)


class TestFilesThatChange:
    def test_what_is_appended_after_the_file_was_found_is_not_read(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        path.write_text("1\n2\nhalf a li")
        for form, expected in ((TEXT, ["1", "2", "half a line"]), (StreamFormat.csv_format(header=False), None)):
            file_source = source(form, path)
            (split,) = file_source.discover_splits(1, frozenset())
            path.write_text("1\n2\nhalf a line\n4\n5\n")
            for batch in (1, 100):
                got = [r for b in drain(file_source.open_reader(split, None), batch) for r in b]
                assert got == (expected or [("1",), ("2",), ("half a line",)])
            path.write_text("1\n2\nhalf a li")

    @pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
    def test_a_file_that_shrinks_or_goes_away_is_an_error(self, tmp_path: Path, name: str) -> None:
        content = b"".join(b"line %d\n" % i for i in range(1000))
        path = tmp_path / name
        path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        file_source = source(TEXT, path)
        (split,) = file_source.discover_splits(1, frozenset())
        reader = file_source.open_reader(split, None)
        reader.read_batch(10)
        position = reader.position()
        path.write_bytes(path.read_bytes()[:-50])
        with pytest.raises(CheckpointError, match=rf"{name} had [\d,]+ bytes and now has"):
            file_source.open_reader(split, position)
        path.unlink()
        with pytest.raises(CheckpointError, match=f"{name} is gone, but 10 of its lines"):
            file_source.open_reader(split, position)

    def test_a_file_that_shrinks_while_it_is_open_is_an_error(self, tmp_path: Path) -> None:
        path = tmp_path / "a.txt"
        path.write_text("line\n" * 200_000)
        reader = reader_of(source(TEXT, path))
        reader.read_batch(10)
        os.truncate(path, 10_000)
        with pytest.raises(CheckpointError, match="it was cut or replaced"):
            list(drain(reader, 50_000))

    def test_a_cut_gzip_file_is_an_error_that_names_it(self, tmp_path: Path) -> None:
        path = tmp_path / "a.gz"
        path.write_bytes(gzip.compress(os.urandom(100_000).hex().encode() + b"\n")[:5_000])
        with pytest.raises(SerializationError, match=r"a\.gz cannot be read after line 0"):
            read(source(TEXT, path))

    def test_an_empty_file_ends_at_once(self, tmp_path: Path) -> None:
        for form in (TEXT, StreamFormat.json_lines_format(), StreamFormat.csv_format()):
            (tmp_path / "empty").write_bytes(b"")
            assert reader_of(source(form, tmp_path / "empty")).read_batch(10) is None


class TestBadRecords:
    def check(self, form: Any, path: Path, line: int, text: str, good: list[Any]) -> None:
        for batch in (1, 100):
            with pytest.raises(SerializationError) as failed:
                read(source(form, path), batch)
            for part in (str(path), f"line {line}:", text, "set_bad_record_policy('skip')"):
                assert part in str(failed.value)
            reader = reader_of(source(form, path, policy="skip"))
            assert [record for records in drain(reader, batch) for record in records] == good
            assert reader.counters() == {"bad_records_skipped": 1}  # type: ignore[attr-defined]

    def test_text_that_is_not_utf_8(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"one\r\ntwo\n\xff\xfe\nfour\n")
        self.check(TEXT, tmp_path / "a", 3, r"\xff\xfe", ["one", "two", "four"])
        assert read(source(StreamFormat.text_line_format("latin-1"), tmp_path / "a"))[2] == "ÿþ"

    def test_json_that_is_not(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b'{"a": 1}\n\n{"a": \n{"a": 3}\n')
        self.check(StreamFormat.json_lines_format(), tmp_path / "a", 3, '{"a":', [{"a": 1}, {"a": 3}])

    def test_two_json_values_on_one_line(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"1\n2 3\n4\n")
        self.check(StreamFormat.json_lines_format(), tmp_path / "a", 2, "2 3", [1, 4])

    def test_a_json_value_over_two_lines(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"[1,\n2]\n3\n")
        with pytest.raises(SerializationError, match="line 1"):
            read(source(StreamFormat.json_lines_format(), tmp_path / "a"))

    def test_csv_with_missing_fields(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text('a,b\n1,"x\ny"\n\n2\n3,z\n')
        self.check(
            StreamFormat.csv_format(),
            tmp_path / "a",
            5,
            "1 fields where 2",
            [{"a": "1", "b": "x\ny"}, {"a": "3", "b": "z"}],
        )

    def test_csv_with_broken_quotes(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text('a\n1\n"2"x\n3\n')
        self.check(StreamFormat.csv_format(), tmp_path / "a", 3, '"2"x', [{"a": "1"}, {"a": "3"}])

    def test_csv_whose_last_quote_is_not_closed(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text('a\n1\n"2\n3\n')
        self.check(StreamFormat.csv_format(), tmp_path / "a", 3, "unexpected end of data", [{"a": "1"}])

    def test_csv_that_is_not_utf_8(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"a\n1\n\xff\n3\n")
        self.check(StreamFormat.csv_format(), tmp_path / "a", 3, r"\xff", [{"a": "1"}, {"a": "3"}])

    def test_csv_that_a_converter_refuses(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("k,v\na,1.5\nb,many\nc,2\n")
        form = StreamFormat.csv_format(converters={"v": float})
        self.check(form, tmp_path / "a", 3, "many", [{"k": "a", "v": 1.5}, {"k": "c", "v": 2.0}])

    def test_parquet_that_is_not(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("not parquet, certainly")
        made = FileSource.for_bulk_file_format(BulkFormat.parquet_format(), str(tmp_path / "a")).build()
        with pytest.raises(SerializationError, match=f"{tmp_path}/a cannot be read as Parquet"):
            reader_of(made)


class TestFormats:
    def test_csv_columns_may_be_named_from_outside(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("x|y\n1|2\n")
        named = StreamFormat.csv_format(columns=["a", "b"], delimiter="|")
        assert read(source(named, tmp_path / "a")) == [{"a": "1", "b": "2"}]
        headless = StreamFormat.csv_format(header=False, columns=["a", "b"], delimiter="|")
        assert read(source(headless, tmp_path / "a")) == [{"a": "x", "b": "y"}, {"a": "1", "b": "2"}]
        with pytest.raises(ConfigurationError, match="no column 'z'"):
            read(source(StreamFormat.csv_format(delimiter="|", converters={"z": int}), tmp_path / "a"))

    def test_a_byte_order_mark_is_no_text(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("\ufeffa\nb\n")
        assert read(source(TEXT, tmp_path / "a")) == ["a", "b"]
        assert read(source(StreamFormat.csv_format(), tmp_path / "a")) == [{"a": "b"}]

    def test_parquet_columns_may_be_chosen(self, tmp_path: Path) -> None:
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table({"a": [1, 2], "b": ["x", "y"]}), tmp_path / "a")
        chosen = FileSource.for_bulk_file_format(BulkFormat.parquet_format(["b"]), str(tmp_path / "a")).build()
        assert read(chosen) == [{"b": "x"}, {"b": "y"}]
        wrong = FileSource.for_bulk_file_format(BulkFormat.parquet_format(["c"]), str(tmp_path / "a")).build()
        with pytest.raises(SerializationError, match="no column 'c'"):
            reader_of(wrong)

    def test_a_compressed_file_is_read_on_without_starting_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "a.gz").write_bytes(gzip.compress(b"".join(b"%d\n" % i for i in range(100))))
        file_source = source(TEXT, tmp_path / "a.gz")
        (split,) = file_source.discover_splits(1, frozenset())
        opened = 0
        real_open = file_access.open_plain

        def counting_open(path: str) -> Any:
            nonlocal opened
            opened += 1
            return real_open(path)

        monkeypatch.setattr(file_access, "open_plain", counting_open)
        position, got = None, []
        for _ in range(10):
            reader = file_source.open_reader(split, position)
            got += reader.read_batch(10) or []
            position = reader.position()
            reader.close()
        assert got == [str(i) for i in range(100)] and opened == 1
        reader = file_source.open_reader(split, (0, 0))  # a replay from before
        assert reader.read_batch(1) == ["0"] and opened == 2
