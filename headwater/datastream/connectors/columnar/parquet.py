"""Parquet files: their groups are row groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from headwater.datastream.connectors.columnar.reader import BATCH_ROWS, ColumnarFile, GroupPosition

KIND = "Parquet"


class ParquetFile(ColumnarFile):
    """Reads a row group batch by batch: a large one need not fit into memory."""

    kind = KIND

    def __init__(self, file: BinaryIO) -> None:
        import pyarrow.parquet as parquet  # takes a while: only for those who read Parquet

        self._file = parquet.ParquetFile(file, page_checksum_verification=True)
        self._metadata = self._file.metadata

    @property
    def schema(self) -> Any:
        return self._file.schema_arrow

    @property
    def groups(self) -> int:
        return int(self._metadata.num_row_groups)

    def group_bytes(self, group: int) -> int:
        found = self._metadata.row_group(group)
        return sum(found.column(index).total_compressed_size for index in range(found.num_columns))

    def batches(self, group: int, columns: list[str] | None) -> Iterator[Any]:
        return iter(self._file.iter_batches(BATCH_ROWS, row_groups=[group], columns=columns, use_threads=False))

    def position_of_row(self, row: int) -> GroupPosition:
        group = 0
        while group < self.groups and row >= self._metadata.row_group(group).num_rows:
            row -= self._metadata.row_group(group).num_rows
            group += 1
        return group, row
