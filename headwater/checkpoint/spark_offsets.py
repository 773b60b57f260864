"""Structured Streaming's own checkpoint, at one micro-batch: what a manifest keeps of it, and a savepoint copies.

Spark numbers micro-batches; a manifest says which one its epoch was. Spark's files have no checksum that we could rely
on, and Spark begins at zero, or reads something else, where they are missing or damaged. So the manifest keeps what
Spark reads when it starts: small files themselves, of large ones length and checksum. A start makes Spark's files what
the manifest says, or stops. Later micro-batches, which Spark had planned but which do not count, are forgotten, and so
is that Spark was done with the manifest's own: Spark begins with that one again, and it is skipped, because its
manifest exists.

::

    spark/metadata              the query's id
    spark/offsets/<batch>       up to where each source was read
    spark/commits/<batch>       the batch is done
    spark/sources/<n>/<entry>   what a source remembers; for files, entry `logOffset` of offsets is its last one
    spark/state/                of a DataFrame with state of its own: Spark notices what is missing or damaged there
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import xxhash

from headwater.checkpoint.storage.durable_file import replace_atomically
from headwater.common.errors import CheckpointError

KEPT_WHOLE: Final = 8192
"""So long a file may be to be in the manifest itself."""

_ENTRY = re.compile(r"(\d+)(\.compact)?")
_CURE: Final = (
    "Restore the file from a copy, or start the job, with a directory of its own, from a savepoint "
    "(execution.state-recovery.path)"
)


class SparkRecorder:
    """Keeps Spark's files in manifests. Reads a file again only when it is another one."""

    def __init__(self, spark: Path) -> None:
        self._spark = spark
        self._known: dict[str, tuple[tuple[int, int, int], Any]] = {}  # {name: (which file it is, what is kept)}

    def record(self, batch_id: int) -> dict[str, Any]:
        """What the manifest of micro-batch `batch_id` says, while that is under way. Plain values."""
        known, self._known = self._known, {}
        for path in _read_at_start(self._spark, batch_id):
            name, stat = path.relative_to(self._spark).as_posix(), path.stat()
            which = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
            before = known.get(name)
            kept = before[1] if before is not None and before[0] == which else _kept(path.read_bytes())
            self._known[name] = (which, kept)
        return {"batch_id": batch_id, "files": {name: kept for name, (_, kept) in self._known.items()}}


def restore_spark(spark: Path, recorded: Mapping[str, Any]) -> None:
    """Make Spark's files what a manifest `recorded`. Raises CheckpointError, and changes nothing, if that cannot be."""
    batch_id = recorded.get("batch_id")
    if batch_id is None:
        shutil.rmtree(spark, ignore_errors=True)  # no micro-batch counts: Spark begins at the beginning
        return
    files = recorded.get("files")
    if files is None:  # by an earlier version
        _offsets(spark, batch_id)
        return
    wrong = [name for name, kept in files.items() if _kept_of(spark / name) != kept]
    for name in wrong:
        if not isinstance(files[name], bytes):
            found = "is missing" if not (spark / name).is_file() else "is damaged: it does not have its checksum"
            raise CheckpointError(f"Spark's file {spark / name} of micro-batch {batch_id} {found}. {_CURE}")
    for name in files:
        _crc(spark / name).unlink(missing_ok=True)  # it may be damaged itself, and Spark does without
    for name in wrong:
        (spark / name).parent.mkdir(parents=True, exist_ok=True)
        with replace_atomically(spark / name, durable=True) as file:
            file.write(files[name])
    for path in _later(spark, batch_id):
        path.unlink()
        _crc(path).unlink(missing_ok=True)


def check_spark_file(spark: Path, name: str, recorded: Mapping[str, Any]) -> None:
    """Raise CheckpointError if a file that the manifest does not hold itself is not what it says."""
    kept = recorded.get("files", {}).get(name)
    if kept is not None and not isinstance(kept, bytes) and _kept_of(spark / name) != kept:
        raise CheckpointError(f"Spark's file {spark / name} is damaged: it does not have its checksum. {_CURE}")


def spark_files(spark: Path, batch_id: int) -> Iterator[Path]:
    """The files below `spark` that belong to micro-batch `batch_id` and those before it."""
    last = _offsets(spark, batch_id)
    if (spark / "metadata").is_file():
        yield spark / "metadata"
    for log in ("offsets", "commits"):
        yield from (path for number, path in _entries(spark / log) if number <= batch_id)
    for source in _sources(spark):
        yield from _entries_up_to(source, _last_entry(last, int(source.name)))


def _read_at_start(spark: Path, batch_id: int) -> Iterator[Path]:
    """What Spark reads when it begins with `batch_id` again."""
    for path in spark_files(spark, batch_id):
        folder = path.parent.relative_to(spark).parts
        number = _number(path)
        wanted = {
            "offsets": range(batch_id - 1, batch_id + 1),
            "commits": range(batch_id - 1, batch_id),
            "sources": range(_compacted(path.parent), sys.maxsize),
        }
        if not folder or number in wanted[folder[0]]:
            yield path


def _later(spark: Path, batch_id: int) -> Iterator[Path]:
    """What Spark wrote for micro-batches after `batch_id`, and that it was done with `batch_id`."""
    last = _offsets(spark, batch_id)
    yield from [path for number, path in _entries(spark / "offsets") if number > batch_id]
    yield from [path for number, path in _entries(spark / "commits") if number >= batch_id]
    for source in _sources(spark):
        counted = set(_entries_up_to(source, _last_entry(last, int(source.name))))
        yield from [path for _, path in _entries(source) if path not in counted]


def _offsets(spark: Path, batch_id: int) -> Path:
    path = spark / "offsets" / str(batch_id)
    if not path.is_file():
        raise CheckpointError(
            f"Spark's offsets of micro-batch {batch_id} are not at {path}; expected them as long as its manifest is "
            "retained. Use a newer checkpoint, or restore the file from a copy"
        )
    return path


def _kept(content: bytes) -> Any:
    return content if len(content) <= KEPT_WHOLE else [len(content), xxhash.xxh64_intdigest(content)]


def _kept_of(path: Path) -> Any:
    try:
        return _kept(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CheckpointError(
            f"Spark's file {path} cannot be read: {error.strerror}; make the file readable"
        ) from error


def _crc(path: Path) -> Path:
    """Hadoop's checksum of a file."""
    return path.with_name(f".{path.name}.crc")


def _sources(spark: Path) -> list[Path]:
    folder = spark / "sources"
    found = [path for path in folder.iterdir() if path.name.isdigit()] if folder.is_dir() else []
    return sorted(found, key=lambda path: int(path.name))


def _number(path: Path) -> int | None:
    match = _ENTRY.fullmatch(path.name)  # others are checksums and drafts, which Spark does without
    return int(match[1]) if match else None


def _entries(folder: Path) -> list[tuple[int, Path]]:
    found = [(_number(path), path) for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
    return sorted((number, path) for number, path in found if number is not None)


def _entries_up_to(folder: Path, last: int | None) -> list[Path]:
    return [path for number, path in _entries(folder) if last is None or number <= last]


def _compacted(folder: Path) -> int:
    """The last entry of a source's log that holds all before it; 0 if there is none."""
    return max((number for number, path in _entries(folder) if path.suffix == ".compact"), default=0)


def _last_entry(offsets: Path, index: int) -> int | None:
    """Return the last log entry of source `index` that `offsets` names; None if the source has no `logOffset`."""
    lines = offsets.read_text(encoding="utf-8").splitlines()[2:]  # after the version and the batch's metadata
    try:
        offset = json.loads(lines[index])
    except (IndexError, ValueError):
        return None
    found = offset.get("logOffset") if isinstance(offset, dict) else None
    return found if isinstance(found, int) else None
