"""Rows that wait in checkpoint storage for their commit, with the statement that they are for."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from headwater.common.connector import OutputFiles
from headwater.datastream.connectors.spool import Spooled, read_spool

Block = tuple[int, bytes]
"""The number of rows, and the rows in the form that the committable names."""


class SpooledRows(msgspec.Struct, frozen=True):
    """A committable: rows of one partition in one epoch."""

    spooled: Spooled
    sql: str
    """With which statement they were written: the program may have another one now."""
    form: str

    @property
    def job_id(self) -> str:
        return self.spooled.job_id

    @property
    def epoch(self) -> int:
        return self.spooled.epoch

    @property
    def partition(self) -> int:
        return self.spooled.partition

    @property
    def name(self) -> str:
        return self.spooled.name

    @property
    def order(self) -> tuple[int, int, str]:
        return self.spooled.epoch, self.spooled.part, self.spooled.name


def read_blocks(rows: SpooledRows, files: OutputFiles | None) -> Iterator[bytes]:
    """Yield the blocks. Raises CheckpointError, at the latest at the end, if any is missing or damaged."""
    for _, block in read_spool(rows.spooled, files, Block, count_of=_rows):
        yield block


def _rows(block: Block) -> int:
    return block[0]
