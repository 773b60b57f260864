"""ORC files: their groups are stripes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from headwater.datastream.connectors.columnar.reader import BATCH_ROWS, ColumnarFile

KIND = "ORC"


class OrcFile(ColumnarFile):
    """Reads a stripe at once."""

    kind = KIND

    def __init__(self, file: BinaryIO) -> None:
        import pyarrow.orc as orc

        self._file = orc.ORCFile(file)

    @property
    def schema(self) -> Any:
        return self._file.schema

    @property
    def groups(self) -> int:
        return int(self._file.nstripes)

    def group_bytes(self, group: int) -> int:
        return int(self._file.content_length) // max(1, self.groups)

    def batches(self, group: int, columns: list[str] | None) -> Iterator[Any]:
        stripe = self._file.read_stripe(group, columns)
        for start in range(0, stripe.num_rows, BATCH_ROWS):
            yield stripe.slice(start, BATCH_ROWS)
