"""Reader of Parquet files: the position is a row number, and reading starts at the row group that holds it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from headwater.common.connector import SplitReader
from headwater.common.errors import CheckpointError, SerializationError
from headwater.datastream.connectors.file_access import FileSplit, current_size, open_plain

_BATCH_ROWS: Final = 8_192


class ParquetReader(SplitReader):
    """Each row is a dict by column name."""

    gives_away = True

    def __init__(self, split: FileSplit, position: int | None, columns: Sequence[str] | None) -> None:
        import pyarrow.parquet as parquet  # takes a while: only for those who read Parquet

        self._row = position or 0
        try:
            size = current_size(split.path)
            if size != split.size:
                raise CheckpointError(
                    f"file {split.path} had {split.size:,} bytes and now has {size:,}: it was replaced while the job "
                    "reads it; restore it, or start on a fresh checkpoint directory"
                )
            self._handle = open_plain(split.path)
            self._file = parquet.ParquetFile(self._handle)
            self._total = int(self._file.metadata.num_rows)
            self._batches = self._batches_from(self._row, columns)
        except FileNotFoundError:
            raise CheckpointError(
                f"file {split.path} is gone, but rows from {self._row} on are still to be read; put it back"
            ) from None
        except (OSError, ValueError, KeyError) as error:  # pyarrow's errors are subclasses of these
            raise SerializationError(f"file {split.path} cannot be read as Parquet: {error}") from error
        self._path = split.path
        self._rows: list[dict[str, Any]] = []
        self._next = 0

    def read_batch(self, max_records: int) -> list[Any] | None:
        if self._next >= len(self._rows):
            try:
                batch = next(self._batches, None)
            except (OSError, ValueError) as error:
                raise SerializationError(f"file {self._path}, after row {self._row}: {error}") from error
            if batch is None:
                return None
            self._rows, self._next = batch, 0
        records = self._rows[self._next : self._next + max_records]
        self._next += len(records)
        self._row += len(records)
        return records

    def position(self) -> int:
        return self._row

    def close(self) -> None:
        self._handle.close()

    def _batches_from(self, row: int, columns: Sequence[str] | None) -> Iterator[list[dict[str, Any]]]:
        metadata = self._file.metadata
        group = 0
        while group < metadata.num_row_groups and row >= metadata.row_group(group).num_rows:
            row -= metadata.row_group(group).num_rows
            group += 1
        wanted = list(columns) if columns is not None else None
        if wanted is not None:
            missing = [name for name in wanted if name not in self._file.schema_arrow.names]
            if missing:
                raise KeyError(f"no column {missing[0]!r}; it has {self._file.schema_arrow.names}")
        groups = list(range(group, metadata.num_row_groups))
        return self._read_groups(groups, row, wanted)

    def _read_groups(self, groups: list[int], skip: int, columns: list[str] | None) -> Iterator[list[dict[str, Any]]]:
        if not groups:
            return
        for batch in self._file.iter_batches(_BATCH_ROWS, row_groups=groups, columns=columns):
            if skip >= batch.num_rows:
                skip -= batch.num_rows
                continue
            part = batch.slice(skip) if skip else batch
            skip = 0
            names = part.schema.names
            if not names:
                yield [{} for _ in range(part.num_rows)]
                continue
            yield [dict(zip(names, row, strict=True)) for row in zip(*map(_to_list, part.columns), strict=True)]


def _to_list(column: Any) -> list[Any]:
    """`to_pylist`, by way of numpy where that gives the same objects: several times faster."""
    from pyarrow import types

    kind = column.type
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    if types.is_string(kind) or types.is_large_string(kind) or (number and column.null_count == 0):
        return list(column.to_numpy(zero_copy_only=False).tolist())
    return list(column.to_pylist())
