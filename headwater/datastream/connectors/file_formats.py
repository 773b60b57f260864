"""What is in a file: settings that know how to open a reader."""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from headwater.common.connector import Split, SplitReader
from headwater.common.errors import ConfigurationError
from headwater.common.serialization import DeserializationSchema
from headwater.datastream.connectors.columnar.orc import KIND as ORC
from headwater.datastream.connectors.columnar.orc import OrcFile
from headwater.datastream.connectors.columnar.parquet import KIND as PARQUET
from headwater.datastream.connectors.columnar.parquet import ParquetFile
from headwater.datastream.connectors.columnar.reader import (
    SPLIT_BYTES,
    ColumnarFile,
    ColumnarReader,
    RecordForm,
    piece_id,
    splits_of,
)
from headwater.datastream.connectors.csv_reader import CsvReader
from headwater.datastream.connectors.file_access import FileSplit, is_compressed, open_decompressed
from headwater.datastream.connectors.record_readers import (
    BadRecordPolicy,
    JsonLinesReader,
    SchemaLineReader,
    TextLineReader,
)

__all__ = ["BulkFormat", "StreamFormat"]


class FileFormat(ABC):
    """Opens readers for one kind of file content. Pickled to the tasks."""

    @abstractmethod
    def open(self, split: FileSplit, position: Any | None, policy: BadRecordPolicy) -> SplitReader:
        """Return a reader of `split` that starts at `position` (None: at its start)."""

    def head_of(self, path: str) -> bytes:
        """What must be before a record of the file at `path` for it to be read alone."""
        return b""

    def splits_of(self, file: FileSplit) -> list[Split]:
        """The splits that a file is read in. Called in the driver when the file is found.

        The first one's id is the file's path, or `piece_id(path, 0)` of groups or bytes: so it is known again.
        """
        return [Split(file.path, file)]


class StreamFormat(FileFormat):
    """Formats read record by record from a stream of bytes; compressed files are recognised by their suffix.

    `split_bytes`: a larger file that is not compressed is read in several splits, side by side, line by line.
    """

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8", split_bytes: int = SPLIT_BYTES) -> StreamFormat:
        """Each line is a str without its line end."""
        return _TextLines(split_bytes, _ascii_compatible(charset_name))

    @staticmethod
    def json_lines_format(split_bytes: int = SPLIT_BYTES) -> StreamFormat:
        """Each line is a JSON value: dict, list, str, number, bool or None."""
        return _JsonLines(split_bytes)

    @staticmethod
    def schema_lines_format(schema: DeserializationSchema, split_bytes: int = SPLIT_BYTES) -> StreamFormat:
        """Each line is a message of `schema`: JSON or CSV rows, changes of a table."""
        if not isinstance(schema, DeserializationSchema):
            raise ConfigurationError(f"schema_lines_format: expected a DeserializationSchema, found {schema!r}")
        return _SchemaLines(split_bytes, schema)

    @staticmethod
    def csv_format(
        header: bool = True,
        columns: Sequence[str] | None = None,
        delimiter: str = ",",
        quote_character: str = '"',
        charset_name: str = "UTF-8",
        converters: Mapping[str, Callable[[str], Any]] | None = None,
    ) -> StreamFormat:
        """Each record is a dict by column name; a tuple of str where there are no names.

        :param header: the first record of each file names the columns (and is skipped where `columns` are given).
        :param converters: {column: function from str}, for example {"amount": float}; what it raises makes the record a
            bad one.
        """
        for name, value in (("delimiter", delimiter), ("quote_character", quote_character)):
            if not isinstance(value, str) or len(value) != 1:
                raise ConfigurationError(f"csv_format: {name} is {value!r}; expected one character")
        dialect = {"delimiter": delimiter, "quotechar": quote_character}
        names = None if columns is None else tuple(columns)
        return _Csv(header, names, dialect, _ascii_compatible(charset_name), dict(converters or {}))


class BulkFormat(FileFormat):
    """Formats read in blocks of records."""

    @staticmethod
    def parquet_format(
        columns: Sequence[str] | None = None, batches: bool = False, split_bytes: int = SPLIT_BYTES
    ) -> BulkFormat:
        """Each row is a dict of `columns` (all of them if None).

        :param batches: each record is a pyarrow.RecordBatch of up to 8192 rows instead.
        :param split_bytes: a file of several row groups that is larger is read in several splits, side by side.
        """
        return ColumnarFormat(ParquetFile, PARQUET, _form("parquet_format", columns, batches), split_bytes)

    @staticmethod
    def orc_format(
        columns: Sequence[str] | None = None, batches: bool = False, split_bytes: int = SPLIT_BYTES
    ) -> BulkFormat:
        """Like `parquet_format`, for ORC, whose groups are stripes."""
        return ColumnarFormat(OrcFile, ORC, _form("orc_format", columns, batches), split_bytes)


@dataclass(frozen=True)
class ColumnarFormat(BulkFormat):
    """Parquet or ORC, in one form or another."""

    open_file: Callable[[BinaryIO], ColumnarFile]
    kind: str
    form: RecordForm
    split_bytes: int = SPLIT_BYTES

    def open(self, split: FileSplit, position: Any | None, policy: BadRecordPolicy) -> SplitReader:
        return ColumnarReader(split, position, self.open_file, self.kind, self.form)

    def splits_of(self, file: FileSplit) -> list[Split]:
        return splits_of(file, self.open_file, self.kind, self.split_bytes)


def _form(method: str, columns: Sequence[str] | None, batches: bool) -> RecordForm:
    if columns is not None and (isinstance(columns, str) or not columns):
        raise ConfigurationError(f"{method}: columns is {columns!r}; expected names of columns, or None for all")
    return RecordForm(None if columns is None else tuple(columns), batches=batches)


@dataclass(frozen=True)
class _Lines(StreamFormat):
    """Formats of which any line can be the first one that is read."""

    split_bytes: int

    def splits_of(self, file: FileSplit) -> list[Split]:
        if file.size <= self.split_bytes or is_compressed(file.path):
            return [Split(file.path, file)]
        starts = range(0, file.size, self.split_bytes)
        return [
            Split(
                piece_id(file.path, start, "byte"),
                FileSplit(file.path, file.size, range=(start, min(start + self.split_bytes, file.size))),
            )
            for start in starts
        ]


@dataclass(frozen=True)
class _TextLines(_Lines):
    charset: str

    def open(self, split: FileSplit, position: Any | None, policy: BadRecordPolicy) -> SplitReader:
        return TextLineReader(split, position, policy, self.charset)


@dataclass(frozen=True)
class _JsonLines(_Lines):
    def open(self, split: FileSplit, position: Any | None, policy: BadRecordPolicy) -> SplitReader:
        return JsonLinesReader(split, position, policy)


@dataclass(frozen=True)
class _SchemaLines(_Lines):
    schema: DeserializationSchema

    def open(self, split: FileSplit, position: Any | None, policy: BadRecordPolicy) -> SplitReader:
        return SchemaLineReader(split, position, policy, self.schema)


@dataclass(frozen=True)
class _Csv(StreamFormat):
    header: bool
    columns: tuple[str, ...] | None
    dialect: dict[str, Any]
    charset: str
    converters: dict[str, Callable[[str], Any]] = field(default_factory=dict)

    def head_of(self, path: str) -> bytes:
        if not self.header:
            return b""
        with open_decompressed(path) as file:
            return file.readline().rstrip(b"\r\n") + b"\n"

    def open(self, split: FileSplit, position: Any | None, policy: BadRecordPolicy) -> SplitReader:
        return CsvReader(
            split,
            position,
            policy,
            charset=self.charset,
            dialect=self.dialect,
            header=self.header,
            columns=self.columns,
            converters=self.converters,
        )


def _ascii_compatible(charset: str) -> str:
    """The charset's own name, if a line feed in it is one byte: positions are byte offsets between lines."""
    try:
        name = codecs.lookup(charset).name
        if name == "utf-8-sig":
            return "utf-8"  # a byte order mark is left out anyway
        one_byte_line_feed = "a\n".encode(name) == b"a\n"
    except (LookupError, TypeError):
        raise ConfigurationError(f"charset {charset!r} is unknown; expected a name such as 'UTF-8'") from None
    if not one_byte_line_feed:
        raise ConfigurationError(f"charset {charset!r} cannot be read by lines; convert the files to UTF-8 first")
    return name
