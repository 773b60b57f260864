"""CSV files in blocks: Arrow reads many lines at once, and only the columns that are wanted.

Where it could understand a line otherwise than the csv module, the block is read line by line, as formats of messages
are: what a line means, and which lines are bad, does not depend on how it is read.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from headwater.common.connector import Blocks, Split, SplitReader
from headwater.common.errors import SqlError
from headwater.common.serialization import DeserializationSchema
from headwater.datastream.connectors.file_access import FileSplit
from headwater.datastream.connectors.file_formats import StreamFormat
from headwater.datastream.connectors.line_stream import LinePosition
from headwater.datastream.connectors.record_readers import BadRecordPolicy, SchemaLineReader
from headwater.table.stream.changes import Changes, concatenated, no_columns, schema_of
from headwater.table.stream.connectors.contract import Field
from headwater.table.stream.connectors.formats import Format, read_times
from headwater.table.stream.operators.to_changes import Converter
from headwater.table.types import logical as t
from headwater.table.types.arrow import to_arrow
from headwater.table.types.logical import LogicalType, TypeRoot

BLOCK_LINES = 16_384
_WORTH_A_BLOCK = 16
"""Fewer lines are read faster one by one."""
_BLANK = (b"\n", b"\r\n", b"\r")
_LINE_END = b"\r\n"


def csv_blocks(format: Format, converter: Converter, fields: tuple[Field, ...]) -> CsvBlocks | None:
    """`format` in blocks, with `fields` as they are wanted; None if Arrow cannot read it all.

    :param converter: makes rows of `fields` of the Rows that the format reads.
    """
    if format.name != "csv" or any(_kind(each.type) is None for each in fields):
        return None
    dialect = format.csv_dialect
    characters = (dialect.delimiter, dialect.quote)
    if dialect.escape is not None or dialect.comments or not all(each and each.isascii() for each in characters):
        return None
    return CsvBlocks(format, format.reader(), converter, fields)


@dataclass(frozen=True)
class CsvBlocks(StreamFormat):
    """Records are batches of rows of `fields`, made of lines of `format`."""

    format: Format
    schema: DeserializationSchema
    converter: Converter
    fields: tuple[Field, ...]

    def open(self, split: FileSplit, position: Any | None, policy: BadRecordPolicy) -> SplitReader:
        return CsvBlockReader(split, position, policy, self)

    def splits_of(self, file: FileSplit) -> list[Split]:
        return StreamFormat.schema_lines_format(self.schema).splits_of(file)


class CsvBlockReader(SchemaLineReader):
    """Its position is that of all readers of lines."""

    batch_records = BLOCK_LINES

    def __init__(
        self, split: FileSplit, position: LinePosition | None, policy: BadRecordPolicy, blocks: CsvBlocks
    ) -> None:
        super().__init__(split, position, policy, blocks.schema)
        self._converter, self._parser = blocks.converter, _Parser(blocks)
        self._converter.open()

    def _decode(self, lines: list[bytes]) -> list[Any]:
        rows = self._parser.parsed(lines) if len(lines) >= _WORTH_A_BLOCK else None
        if rows is None:
            records = super()._decode(lines)
            rows = self._converter.convert(records, None, 0).rows if records else None
        return Blocks([rows], rows.num_rows) if rows is not None and rows.num_rows else []


class _Parser:
    """Reads a block of lines by Arrow."""

    def __init__(self, blocks: CsvBlocks) -> None:
        dialect, names = blocks.format.csv_dialect, [each.name for each in blocks.format.fields]
        assert dialect.quote is not None
        self._fields, self._zone = blocks.fields, blocks.format.context.zone
        self._names = names
        self._quote = ord(dialect.quote)
        self._edge = np.zeros(256, np.bool_)
        self._edge[[ord(dialect.delimiter), self._quote, *_LINE_END]] = True
        self._parse = pa.csv.ParseOptions(delimiter=dialect.delimiter, quote_char=dialect.quote)
        self._convert = pa.csv.ConvertOptions(
            column_types={each.name: _kind(each.type) for each in blocks.fields},
            include_columns=[each.name for each in blocks.fields] or names[:1],
            null_values=[dialect.null or ""],
            strings_can_be_null=dialect.null is not None,
            true_values=["true", "True", "TRUE"],
            false_values=["false", "False", "FALSE"],
        )
        self._whole = [each.name for each in blocks.fields if t.is_integer(each.type)]
        self._schema = schema_of(blocks.fields)

    def parsed(self, lines: list[bytes]) -> pa.RecordBatch | None:
        """The rows of the lines; None if these must be read one by one."""
        block = b"".join(lines)
        if not self._is_plain(block):
            return None
        size = pa.csv.ReadOptions(use_threads=False, column_names=self._names, block_size=len(block) + 1)
        try:
            table = pa.csv.read_csv(io.BytesIO(block), size, self._parse, self._convert).combine_chunks()
            if table.num_rows != len(lines) and table.num_rows != len(lines) - sum(map(lines.count, _BLANK)):
                return None  # a line feed between quotes
            if not self._fields:
                return no_columns(table.num_rows)
            columns = [self._column(table.column(each.name), each) for each in self._fields]
        except (pa.ArrowException, SqlError, ValueError):
            return None
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _is_plain(self, block: bytes) -> bool:
        """Whether all that read CSV agree about it: fields are within quotes as a whole or not at all, lines end with
        LF or CR LF, and no number is hexadecimal."""
        if b"\r" in block and block.count(b"\r") != block.count(_LINE_END):
            return False
        if self._whole and (b"0x" in block or b"0X" in block):
            return False
        if self._quote not in block:
            return True
        text = np.frombuffer(block, np.uint8)
        quotes = np.flatnonzero(text == self._quote)
        if len(quotes) % 2:
            return False
        first, last = quotes[0::2], quotes[1::2]
        first, last = first[first > 0], last[last < len(text) - 1]
        return bool(self._edge[text[first - 1]].all() and self._edge[text[last + 1]].all())

    def _column(self, found: pa.ChunkedArray, field: Field) -> pa.Array:
        column = found.chunk(0) if found.num_chunks else pa.array([], found.type)
        if t.is_temporal(field.type):
            return read_times(column, field.type, self._zone, field.name)
        return column.cast(to_arrow(field.type))


@dataclass(frozen=True)
class BlockConverter(Converter):
    """Records are batches that have the wanted columns already."""

    fields: tuple[Field, ...]

    def convert(self, records: list[Any], timestamps: list[int | None] | None, now_ms: int) -> Changes:
        schema = schema_of(self.fields)
        return concatenated([Changes(each) for each in records], schema)


def _kind(type_: LogicalType) -> pa.DataType | None:
    """As what Arrow reads a column: floats as doubles, as Python does, times as texts. None: it cannot."""
    if t.is_string(type_) or t.is_temporal(type_):
        return pa.string()
    if type_.root in t.APPROXIMATE_ROOTS:
        return pa.float64()
    return to_arrow(type_) if t.is_integer(type_) or type_.root is TypeRoot.BOOLEAN else None
