"""Avro files: dicts or Rows read by a FileSource, records written by a FileSink."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from headwater.common.connector import SplitReader
from headwater.common.errors import ConfigurationError, SerializationError, short_repr
from headwater.common.io import InputFormat
from headwater.datastream.connectors.bulk_writers import BulkWriter, BulkWriterFactory
from headwater.datastream.connectors.file_access import FileSplit, open_unchanged
from headwater.datastream.connectors.file_formats import BulkFormat
from headwater.datastream.connectors.file_source import FileSource
from headwater.datastream.connectors.record_readers import BadRecordPolicy
from headwater.datastream.formats.avro.container import Container, DamagedContainer
from headwater.datastream.formats.avro.schema import (
    AvroSchema,
    GenericRecordAvroTypeInfo,
    checked_schema,
    fastavro,
)
from headwater.datastream.formats.avro.values import to_avro, to_rows

__all__ = ["AvroBulkWriters", "AvroInputFormat", "AvroReaders"]

BlockPosition = tuple[int, int]
"""(byte at which a block begins, records of it that were read)"""

CODECS = ("null", "deflate", "bzip2", "xz", "zstandard", "snappy")


class AvroReaders:
    """Avro files for `FileSource.for_bulk_file_format`."""

    @staticmethod
    def for_generic_record(schema: AvroSchema | None = None) -> BulkFormat:
        """Each record is a dict, of `schema` if there is one: files of older and newer versions are adapted to it."""
        return _AvroFormat(None if schema is None else checked_schema(schema), rows=False)

    @staticmethod
    def for_rows(schema: AvroSchema | None = None) -> BulkFormat:
        """Like `for_generic_record`; each record is a Row."""
        return _AvroFormat(None if schema is None else checked_schema(schema), rows=True)


class AvroInputFormat(InputFormat):
    """The records of the Avro files at `path` as dicts of `schema`, for `env.create_input`."""

    def __init__(self, path: str, schema: AvroSchema) -> None:
        self._path = path
        self._type_info = GenericRecordAvroTypeInfo(schema)

    def get_produced_type(self) -> GenericRecordAvroTypeInfo:
        return self._type_info

    def create_source(self) -> FileSource:
        form = AvroReaders.for_generic_record(self._type_info.schema)
        return FileSource.for_bulk_file_format(form, self._path).build()


class AvroBulkWriters:
    """Avro files for `FileSink.for_bulk_format`."""

    @staticmethod
    def for_generic_record(schema: AvroSchema, codec: str = "null") -> BulkWriterFactory:
        """Of dicts, Rows, or tuples in the order of the fields. `codec`: one of null, deflate, zstandard, snappy ..."""
        if codec not in CODECS:
            raise ConfigurationError(f"Avro: the codec is {codec!r}; expected one of {', '.join(CODECS)}")
        return _AvroWriterFactory(checked_schema(schema), codec)


@dataclass(frozen=True)
class _AvroFormat(BulkFormat):
    schema: AvroSchema | None
    rows: bool

    def open(self, split: FileSplit, position: Any | None, policy: BadRecordPolicy) -> SplitReader:
        return _AvroReader(self, split, position)


class _AvroReader(SplitReader):
    gives_away = True

    def __init__(self, settings: _AvroFormat, split: FileSplit, position: BlockPosition | None) -> None:
        self._path = split.path
        self._read = fastavro().schemaless_reader
        self._file = open_unchanged(split, position)
        try:
            self._container = Container(self._file, split.size)
        except (DamagedContainer, OSError) as error:
            self._file.close()
            raise SerializationError(f"file {split.path} cannot be read as Avro: {error}") from error
        except BaseException:
            self._file.close()
            raise
        self._writer_schema = self._container.schema
        reader = settings.schema
        self._reader_schema = None if reader is None or reader == self._writer_schema else reader.parsed
        in_order = self._reader_schema is None
        self._convert = to_rows(reader or self._writer_schema, in_order=in_order) if settings.rows else None
        self._block = None
        self._done = 0
        if position is not None:
            self._container.seek(position[0])
            self._block = self._next_block()
            if position[1]:
                self._decode(position[1])

    def read_batch(self, max_records: int) -> list[Any] | None:
        if self._block is None or self._done == self._block.records:
            self._block, self._done = self._next_block(), 0
        while self._block is not None and self._block.records == 0:
            self._block = self._next_block()
        if self._block is None:
            return None
        return self._decode(min(max_records, self._block.records - self._done))

    def position(self) -> BlockPosition:
        if self._block is None:
            return self._container.offset, 0
        if self._done == self._block.records:
            return self._container.offset, 0
        return self._block.offset, self._done

    def close(self) -> None:
        self._file.close()

    def _next_block(self) -> Any:
        try:
            return self._container.next_block()
        except (DamagedContainer, OSError) as error:
            raise SerializationError(f"file {self._path} is damaged: {error}") from error

    def _decode(self, count: int) -> list[Any]:
        block = self._block
        assert block is not None
        read, data, written, reader = self._read, block.data, self._writer_schema.parsed, self._reader_schema
        records: list[Any] = []
        try:
            for _ in range(count):
                records.append(read(data, written, reader))
        except Exception as error:  # fastavro raises whatever the wrong bytes lead to
            number = self._done + len(records)
            problem = str(error) or type(error).__name__
            raise SerializationError(
                f"file {self._path}, block at byte {block.offset}, record {number} of it, cannot be read: {problem}"
            ) from error
        self._done += count
        if self._done == block.records and (rest := len(data.getbuffer()) - data.tell()):
            raise SerializationError(
                f"file {self._path}, block at byte {block.offset}: {rest} bytes are left after its last record"
            )
        return records if self._convert is None else list(map(self._convert, records))


@dataclass(frozen=True)
class _AvroWriterFactory(BulkWriterFactory):
    insert_only = True

    schema: AvroSchema
    codec: str

    def create(self, file: BinaryIO) -> BulkWriter:
        return _AvroWriter(file, self)


class _AvroWriter(BulkWriter):
    def __init__(self, file: BinaryIO, settings: _AvroWriterFactory) -> None:
        self._schema = settings.schema
        self._convert = to_avro(settings.schema)
        self._writer = fastavro().write.Writer(file, settings.schema.parsed, settings.codec)

    def add_batch(self, values: Sequence[Any]) -> None:
        for value in values:
            try:
                self._writer.write(self._convert(value))
            except (ValueError, TypeError, OverflowError) as error:
                raise SerializationError(
                    f"Avro: record {short_repr(value)} is no {self._schema.record_name}: {error}"
                ) from None

    def finish(self) -> None:
        self._writer.flush()
