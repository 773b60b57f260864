"""Output of a `FileSink` that waits for its commit."""

from __future__ import annotations

from typing import Any

from headwater.common.connector import WriterContext
from headwater.datastream.connectors.file_system import FileSink


class Crash(Exception):
    """The driver dies."""


def prepared(sink: FileSink, partitions: int = 3, epoch: int = 3) -> list[Any]:
    """Two lines of each partition, pending."""
    found: list[Any] = []
    for partition in range(partitions):
        writer = sink.create_writer(WriterContext("job", "files", partition, partitions, f"{epoch}-0", epoch))
        writer.write_batch([f"{partition}a", f"{partition}b"], None)
        found += writer.prepare_commit()
    return found
