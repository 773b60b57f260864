"""Native snapshots: the database files of a state backend. Files that the storage already has are not sent again.

A native snapshot is one snapshot file (file.py), the index, and any number of files beside it: ::

    s1-p0-e000000000012-<attempt>.native             header: which operator's database has which files
                                                     sections: the small files of the databases, which differ each time;
                                                     then sections to load on top of the databases, and state that is
                                                     not in a database (operators' lists)
    s1-p0-e000000000012-<attempt>.0-000017.sst       a file of database 0 that is new in this snapshot
    s1-p0-e000000000007-<attempt>.0-000009.sst       a shared file, which an earlier snapshot sent

The manifest names all of them, so a file stays exactly as long as a retained manifest needs it. A snapshot shares a
file only if the last durable checkpoint names it: then nobody deletes the file meanwhile. The manifest has the length
and checksum of every file, and readers check them before they open a database (native_reader.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import xxhash

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.snapshot.file import NativeFile, SnapshotRef, write_snapshot
from headwater.checkpoint.storage.base import Location, stored
from headwater.common.errors import CheckpointError
from headwater.state.snapshot.section import NO_KEY_GROUP, Section

NATIVE_FILE: Final = "native_file"
"""Kind of the sections in the index that hold small files. Readers of state never see them."""

_SHARED_SUFFIX: Final = ".sst"
"""Files with this suffix never change once written. All others go into the index."""

_CHUNK: Final = 1 << 20

FileKey = tuple[str, str]
"""(operator uid, file name in the directory of that operator's database)"""


@dataclass(frozen=True)
class NativeDatabase:
    """One operator's database: a directory whose files must not change until the snapshot is written."""

    uid: str
    key_groups: range
    directory: Path
    on_top: Iterable[Section] = ()
    """Sections to load after the database. Iterated once, when the snapshot is written."""


class NativeSnapshot:
    """A native snapshot to write. The constructor decides which of its files are new."""

    def __init__(
        self,
        layout: CheckpointLayout,
        path: Location,
        header: Mapping[str, Any],
        databases: Sequence[NativeDatabase],
        sections: Sequence[Section],
        shared: Mapping[FileKey, NativeFile],
    ) -> None:
        """`path` is where the index goes; no other snapshot may ever use its name. `shared` are the files that the last
        durable checkpoint names, with the same names and content as in the databases."""
        self._layout = layout
        self._path = path
        self._header = dict(header)
        self._databases = databases
        self._sections = sections
        self.cancelled = False
        self.files: dict[FileKey, NativeFile] = {}
        """The files that are in the storage. After `write`: all files."""
        self._new: dict[FileKey, tuple[Path, str]] = {}  # {key: (local path, name in the storage)}
        for number, database in enumerate(databases):
            for source in sorted(database.directory.glob(f"*{_SHARED_SUFFIX}")):
                key = (database.uid, source.name)
                known = shared.get(key)
                if known is not None and known.length == source.stat().st_size:
                    self.files[key] = known
                else:
                    self._new[key] = (source, f"{path.name.removesuffix('.native')}.{number}-{source.name}")

    @property
    def names(self) -> tuple[str, ...]:
        """The files that `write` writes. They are not garbage, although no manifest names them yet."""
        return (self._path.name, *(name for _, name in self._new.values()))

    def cancel(self) -> None:
        """Make `write`, which runs in another thread, fail soon."""
        self.cancelled = True

    def write(self) -> SnapshotRef:
        """Send the new files, then the index. If it raises CheckpointError, the files sent so far are garbage."""
        for key, (source, name) in self._new.items():
            if self.cancelled:
                raise CheckpointError(f"snapshot {self._path} was cancelled")
            self.files[key] = self._send(source, name)
        facts = {
            database.uid: {
                "key_groups": (database.key_groups.start, database.key_groups.stop),
                "files": {local: file.name for (uid, local), file in self.files.items() if uid == database.uid},
            }
            for database in self._databases
        }
        on_top = itertools.chain.from_iterable(database.on_top for database in self._databases)
        sections = itertools.chain(self._small_files(), on_top, self._sections)
        ref = write_snapshot(self._path, {**self._header, "kind": "native", "native": facts}, sections)
        return msgspec.structs.replace(ref, files=tuple(self.files.values()))

    def _send(self, source: Path, name: str) -> NativeFile:
        target = stored(self._layout.snapshot(name))
        digest = xxhash.xxh64()
        length = 0
        try:
            with open(source, "rb") as reader, target.storage.write(target.path) as writer:
                while chunk := reader.read(_CHUNK):
                    digest.update(chunk)
                    length += writer.write(chunk)
        except OSError as error:
            raise CheckpointError(
                f"snapshot file {target} of epoch {self._header['epoch']} cannot be written: "
                f"{error.strerror or error}; make room, or make the directory writable. The checkpoint before it is as "
                "it was"
            ) from error
        return NativeFile(name, length, digest.intdigest())

    def _small_files(self) -> Iterator[Section]:
        for database in self._databases:
            for source in sorted(database.directory.iterdir()):
                if source.suffix != _SHARED_SUFFIX and source.name != "LOCK":
                    yield Section(database.uid, NATIVE_FILE, source.name, NO_KEY_GROUP, source.read_bytes())


class UploadedFiles:
    """Which files of a slot's databases are in the storage, and under which names.

    Valid only for the databases that the slot has open: in any other database, RocksDB's number of a file means another
    file.
    """

    def __init__(self) -> None:
        self._files: dict[FileKey, NativeFile] = {}

    def replace_with(self, files: Mapping[FileKey, NativeFile]) -> None:
        """`files` are in the storage. Forget all others."""
        self._files = dict(files)

    def add(self, files: Mapping[FileKey, NativeFile]) -> None:
        """`files` are in the storage too."""
        self._files.update(files)

    def named_by(self, chain: Sequence[SnapshotRef]) -> dict[FileKey, NativeFile]:
        """Return the files that a new snapshot may share: those named by `chain`, the last durable checkpoint's."""
        names = {file.name for ref in chain for file in ref.files}
        return {key: file for key, file in self._files.items() if file.name in names}
