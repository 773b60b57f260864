"""Structured Streaming's own checkpoint, cut at one micro-batch: the part of a savepoint that Spark reads.

Spark numbers micro-batches; a manifest says which one its epoch was. A copy must not know of later ones: Spark would
go on after them, and their records would be lost. A repeated last batch is harmless: its manifest exists, so it is
skipped.

::

    spark/metadata              the query's id
    spark/offsets/<batch>       up to where each source was read
    spark/commits/<batch>       the batch is done
    spark/sources/<n>/<entry>   what a source remembers; for files, entry `logOffset` of offsets is its last one
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from headwater.common.errors import CheckpointError

_ENTRY = re.compile(r"(\d+)(?:\.compact)?")


def spark_files(spark: Path, batch_id: int) -> Iterator[Path]:
    """The files below `spark` that belong to micro-batch `batch_id` and those before it."""
    last = spark / "offsets" / str(batch_id)
    if not last.is_file():
        raise CheckpointError(
            f"Spark's offsets of micro-batch {batch_id} are not at {last}; expected them as long as its manifest is "
            "retained. Use a newer checkpoint, or restore the file from a copy"
        )
    if (spark / "metadata").is_file():
        yield spark / "metadata"
    for log in ("offsets", "commits"):
        yield from _entries(spark / log, batch_id)
    for source in _sources(spark):
        yield from _entries(source, _last_entry(last, int(source.name)))


def _sources(spark: Path) -> list[Path]:
    folder = spark / "sources"
    found = [path for path in folder.iterdir() if path.name.isdigit()] if folder.is_dir() else []
    return sorted(found, key=lambda path: int(path.name))


def _entries(folder: Path, last: int | None) -> Iterator[Path]:
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        match = _ENTRY.fullmatch(path.name)  # others are checksums and drafts, which Spark does without
        if match and path.is_file() and (last is None or int(match[1]) <= last):
            yield path


def _last_entry(offsets: Path, index: int) -> int | None:
    """The last entry of source `index` that the offsets know of; None if the source does not number them that way."""
    lines = offsets.read_text(encoding="utf-8").splitlines()[2:]  # after the version and the batch's metadata
    try:
        offset = json.loads(lines[index])
    except (IndexError, ValueError):
        return None
    found = offset.get("logOffset") if isinstance(offset, dict) else None
    return found if isinstance(found, int) else None
