"""Partitions of tables of files: directories k=v, whose names are the values of columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from headwater.common.connector import Split, SplitReader
from headwater.common.errors import SqlError
from headwater.common.serialization import DeserializationSchema
from headwater.common.types import Row
from headwater.datastream.connectors.file_access import FileSplit
from headwater.datastream.connectors.file_formats import BulkFormat, ColumnarFormat, FileFormat, StreamFormat
from headwater.datastream.connectors.record_readers import BadRecordPolicy
from headwater.table.batch.rows import sql_text
from headwater.table.functions.casting.arrays import cast_column
from headwater.table.stream.connectors.contract import Field
from headwater.table.stream.connectors.pushed import Wanted
from headwater.table.types.arrow import to_arrow
from headwater.table.types.logical import STRING

DEFAULT_PARTITION = "__DEFAULT_PARTITION__"
_NULLS = (DEFAULT_PARTITION, "__HIVE_DEFAULT_PARTITION__")
_SPECIAL = "\"#%'*/:=?\\\x7f{}[]^"


def escaped(text: str) -> str:
    """A value as the name of a directory: as Hive escapes it."""
    return "".join(f"%{ord(each):02X}" if each in _SPECIAL or ord(each) < 32 else each for each in text)


def _unescaped(text: str) -> str:
    return re.sub("%([0-9A-Fa-f]{2})", lambda match: chr(int(match[1], 16)), text)


@dataclass(frozen=True)
class PartitionKeys:
    """The columns of a table that are directories, in their order."""

    fields: tuple[Field, ...]
    table: str
    wanted: Wanted | None = None
    """Which partitions are read; None: all."""

    def reads(self, path: str) -> bool:
        """Whether the file is of a partition that is read. Raises SqlError for a file at a wrong place."""
        values = dict(zip((each.name for each in self.fields), self.columns(path), strict=True))
        return self.wanted is None or self.wanted.holds(values)

    def directory(self, values: Sequence[Any]) -> str:
        """Where rows with these values are."""
        return "/".join(
            f"{each.name}={DEFAULT_PARTITION if value in (None, '') else escaped(sql_text(value, each.type))}"
            for each, value in zip(self.fields, values, strict=True)
        )

    def columns(self, path: str) -> tuple[pa.Scalar, ...]:
        """The values of all rows of a file, by its directories. Raises SqlError."""
        names = dict(part.split("=", 1) for part in path.split("/")[:-1] if "=" in part)
        found = []
        for each in self.fields:
            if each.name not in names:
                raise SqlError(
                    f"table '{self.table}' is partitioned by {', '.join(field.name for field in self.fields)}, and file"
                    f" '{path}' is in no directory '{each.name}=…'"
                )
            text = None if names[each.name] in _NULLS else _unescaped(names[each.name])
            try:
                column = cast_column(pa.array([text], pa.string()), STRING, each.type, "UTC")
            except Exception as error:
                raise SqlError(
                    f"table '{self.table}': column '{each.name}' is {each.type.sql()}, and the directory of file"
                    f" '{path}' does not fit: {error}"
                ) from None
            found.append(column.cast(to_arrow(each.type))[0])
        return tuple(found)


NO_PARTITIONS = PartitionKeys((), "")


@dataclass(frozen=True)
class PartitionedLines(StreamFormat):
    """Rows of lines, with the values of their file's directories behind the others. `inner` is one of a schema."""

    inner: Any
    keys: PartitionKeys

    def open(self, split: FileSplit, position: Any | None, policy: BadRecordPolicy) -> SplitReader:
        values = [each.as_py() for each in self.keys.columns(split.path)]
        reader: SplitReader = replace(self.inner, schema=_Tagged(self.inner.schema, values)).open(
            split, position, policy
        )
        return reader

    def head_of(self, path: str) -> bytes:
        return bytes(self.inner.head_of(path))

    def splits_of(self, file: FileSplit) -> list[Split]:
        found: list[Split] = self.inner.splits_of(file) if self.keys.reads(file.path) else []
        return found


class _Tagged(DeserializationSchema):
    def __init__(self, inner: DeserializationSchema, values: list[Any]) -> None:
        self._inner = inner
        self._values = values

    def deserialize(self, message: bytes) -> Any:
        raise NotImplementedError

    def deserialize_all(self, message: bytes) -> list[Any]:
        return [
            None if row is None else Row.of_kind(row.get_row_kind(), *row, *self._values)
            for row in self._inner.deserialize_all(message)
        ]


@dataclass(frozen=True)
class PartitionedColumns(BulkFormat):
    """Batches of Parquet or ORC, with a column for each directory."""

    inner: ColumnarFormat
    keys: PartitionKeys

    def open(self, split: FileSplit, position: Any | None, policy: BadRecordPolicy) -> SplitReader:
        names = [each.name for each in self.keys.fields]
        repeated = tuple(zip(names, self.keys.columns(split.path), strict=True))
        form = replace(self.inner.form, repeated=repeated)
        return replace(self.inner, form=form).open(split, position, policy)

    def splits_of(self, file: FileSplit) -> list[Split]:
        return self.inner.splits_of(file) if self.keys.reads(file.path) else []


def partitioned(form: FileFormat, keys: PartitionKeys) -> FileFormat:
    return PartitionedColumns(form, keys) if isinstance(form, ColumnarFormat) else PartitionedLines(form, keys)
