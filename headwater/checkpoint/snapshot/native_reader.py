"""Reads snapshots of every kind: native ones as whole databases, or section by section.

A backend of the same kind with the same key groups can restore a database by its files. For all other readers (another
parallelism, the heap backend, tools) the database is opened and read entry by entry.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import xxhash

from headwater.checkpoint.paths import CheckpointLayout, validate_name
from headwater.checkpoint.snapshot.file import NativeFile, SnapshotRef, read_header, read_sections
from headwater.checkpoint.snapshot.native import NATIVE_FILE, FileKey
from headwater.checkpoint.storage.base import Location, stored
from headwater.common.errors import CheckpointError, DamagedSnapshotError
from headwater.common.machine.local_disk import NO_ROOM, room_for
from headwater.state.restricted import StandIns
from headwater.state.snapshot.section import Section

log = logging.getLogger(__name__)

_CHUNK: Final = 1 << 20
_MAKE_ROOM: Final = (
    "make room there, or let state.backend.rocksdb.localdir (for tools: the environment variable TMPDIR) be a "
    "directory on a larger disk. The snapshot is as it was"
)


@dataclass(frozen=True)
class StoredDatabase:
    """One operator's database in a native snapshot."""

    layout: CheckpointLayout
    ref: SnapshotRef
    uid: str
    key_groups: range
    files: Mapping[str, NativeFile]
    """{file name in the database: file in the storage}"""

    def fetch(self, directory: Path) -> None:
        """Copy or link all files of the database into `directory`, which must be empty, and check each of them."""
        what = f"operator '{self.uid}': the RocksDB files of snapshot {self.ref.name}"
        with room_for(what, directory, _MAKE_ROOM):
            for local, file in self.files.items():
                _fetch(self.layout, file, self.ref, directory / validate_name(local, "file of a native snapshot"))
            index = self.layout.snapshot(self.ref.name)
            for section in read_sections(index, self.ref, range(0)):
                if section.kind == NATIVE_FILE and section.uid == self.uid:
                    name = validate_name(section.name, "file of a native snapshot")
                    (directory / name).write_bytes(section.payload)

    def file_keys(self) -> dict[FileKey, NativeFile]:
        return {(self.uid, local): file for local, file in self.files.items()}

    def sections(
        self, key_groups: range | None = None, scratch: Path | None = None, stand_ins: StandIns | None = None
    ) -> Iterator[Section]:
        """What the database holds for `key_groups`. All its files are fetched to a directory in `scratch` for it."""
        if key_groups is not None and not range(
            max(key_groups.start, self.key_groups.start), min(key_groups.stop, self.key_groups.stop)
        ):
            return
        # Imported here: other readers must not load RocksDB.
        from headwater.state.rocksdb.native import read_native_sections

        directory = Path(tempfile.mkdtemp(prefix="headwater-native-", dir=scratch))
        try:
            self.fetch(directory)
            yield from read_native_sections(directory, self.uid, key_groups, stand_ins)
        finally:
            shutil.rmtree(directory, ignore_errors=True)


TakeDatabase = Callable[[StoredDatabase], bool]
"""Returns True if the caller restored this database directly, so that its sections are not needed."""


def stored_databases(layout: CheckpointLayout, ref: SnapshotRef) -> list[StoredDatabase]:
    """Return the databases of a native snapshot; none for the other kinds."""
    if ref.kind != "native":
        return []
    files = {file.name: file for file in ref.files}
    databases: list[StoredDatabase] = []
    for uid, facts in read_header(layout.snapshot(ref.name), ref)["native"].items():
        own = {local: files[name] for local, name in facts["files"].items()}
        databases.append(StoredDatabase(layout, ref, uid, range(*facts["key_groups"]), own))
    return databases


def snapshot_sections(
    layout: CheckpointLayout,
    ref: SnapshotRef,
    key_groups: range | None = None,
    *,
    include_unkeyed: bool = True,
    take: TakeDatabase | None = None,
    scratch: Path | None = None,
    stand_ins: StandIns | None = None,
) -> Iterator[Section]:
    """Like `read_sections`, for snapshots of every kind. Databases that `take` refuses are read entry by entry.

    `scratch` is where there is room for all files of a database; None: where the machine keeps temporary files.
    With `stand_ins` no class that a snapshot names is loaded: it may be somebody else's.
    """
    for database in stored_databases(layout, ref) if key_groups is None or key_groups else ():
        if take is None or not take(database):
            yield from database.sections(key_groups, scratch, stand_ins)
    for section in read_sections(layout.snapshot(ref.name), ref, key_groups, include_unkeyed=include_unkeyed):
        if section.kind != NATIVE_FILE:
            yield section


def check_native_file(layout: CheckpointLayout, file: NativeFile, ref: SnapshotRef) -> None:
    """Raise CheckpointError if `file` is missing or damaged in `layout`. `ref` is a snapshot that names it."""
    location = layout.snapshot(file.name)
    target = stored(location)
    try:
        with target.storage.open(target.path) as reader:
            _compare(reader.read, file, ref, location)
    except FileNotFoundError:
        raise _missing(location, file, ref) from None
    except OSError as error:
        raise _unreadable(location, file, ref, error) from error


def _fetch(layout: CheckpointLayout, file: NativeFile, ref: SnapshotRef, target: Path) -> None:
    location = layout.snapshot(file.name)
    source = stored(location)
    copy = source.storage.local_copy(source.path)
    if copy is not None:
        try:
            _link(copy, target)
            _check_local(target, file, ref, copy)
            return
        except (CheckpointError, OSError) as error:
            log.warning("%s; it is a local copy: reading %s instead", error, location)
            with contextlib.suppress(FileNotFoundError):
                target.unlink()
    try:
        if isinstance(location, Path):
            _link(location, target)
        else:
            source.storage.download(source.path, target)
        _check_local(target, file, ref, location)
    except FileNotFoundError:
        raise _missing(location, file, ref) from None
    except OSError as error:
        if error.errno in NO_ROOM:
            raise
        raise _unreadable(location, file, ref, error) from error


def _link(source: Path, target: Path) -> None:
    """Make `target` a hard link to `source`, or a copy. A link is safe because nobody ever writes to these files."""
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:  # another disk, or a file system without links
        shutil.copyfile(source, target)


def _check_local(target: Path, file: NativeFile, ref: SnapshotRef, named: Location) -> None:
    with open(target, "rb") as reader:
        _compare(reader.read, file, ref, named)


def _compare(read: Callable[[int], bytes], file: NativeFile, ref: SnapshotRef, location: Location) -> None:
    digest = xxhash.xxh64()
    length = 0
    while chunk := read(_CHUNK):
        digest.update(chunk)
        length += len(chunk)
    if length != file.length:
        raise _damaged(location, file, ref, f"it has {length:,} bytes, its manifest says {file.length:,}")
    if digest.intdigest() != file.checksum:
        raise _damaged(location, file, ref, "it does not have its checksum")


def _damaged(location: Location, file: NativeFile, ref: SnapshotRef, what: str) -> DamagedSnapshotError:
    return DamagedSnapshotError(
        f"snapshot file {location} of epoch {ref.epoch} is damaged: {what}. Restore the file from a copy", file.name
    )


def _missing(location: Location, file: NativeFile, ref: SnapshotRef) -> DamagedSnapshotError:
    return DamagedSnapshotError(
        f"snapshot file {location} of epoch {ref.epoch} is missing; its manifest names it, so it was deleted from "
        "outside. Restore the file from a copy",
        file.name,
    )


def _unreadable(location: Location, file: NativeFile, ref: SnapshotRef, error: OSError) -> CheckpointError:
    text = f"snapshot file {location} of epoch {ref.epoch} cannot be read: {error.strerror or error}"
    # Only EIO proves damage: other errors may come from the directory that the file is copied to.
    return DamagedSnapshotError(text, file.name) if error.errno == errno.EIO else CheckpointError(text)
