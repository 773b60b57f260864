"""Native snapshots: a slot's database files, uploaded as they are and restored as they are.

A native checkpoint is a directory of hard links; making one between two epochs takes next to no time. The slot uploads
its files in the background. Files that the storage already has are only named in the new snapshot.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.snapshot.file import SnapshotRef
from headwater.checkpoint.snapshot.native import NativeDatabase, NativeSnapshot, UploadedFiles
from headwater.checkpoint.snapshot.native_reader import StoredDatabase
from headwater.checkpoint.storage.base import Location
from headwater.common.errors import LocalDiskError
from headwater.common.trusted_directories import make_directory
from headwater.runtime.background import Background
from headwater.runtime.slot.full_snapshot import warn_of_failure
from headwater.state.keyed_backend import KeyedStateBackend
from headwater.state.operator_backend import OperatorStateBackend
from headwater.state.snapshot.native_state import NativeState
from headwater.state.snapshot.section import Section

log = logging.getLogger(__name__)

StateBackend = KeyedStateBackend | OperatorStateBackend


class NativeSnapshots:
    """The native snapshots of one slot and its current backends. Call `forget` before the slot gets new backends."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._uploaded = UploadedFiles()
        self._restored: list[NativeDatabase] = []
        """Copies of the databases as they were restored. The first snapshot of the new chain contains them."""
        self._first: NativeSnapshot | None = None

    # --- restoring

    def load(self, backend: NativeState, database: StoredDatabase, key_groups: range, *, own: bool) -> bool:
        """Restore `backend` from the files of `database`. Return False if the caller must read its sections instead.

        `key_groups` is the caller's share of the database: the files are only usable if the backend needs exactly that
        share and is empty. `own`: the slot goes on with this snapshot's chain, so its files are not uploaded again.
        """
        if key_groups != backend.key_groups or backend.state_names():
            return False
        directory = Path(tempfile.mkdtemp(prefix="rocksdb-restore-", dir=_made(backend.local_directory)))
        try:
            database.fetch(directory)
            if backend.load_native(directory) and own:
                self._uploaded.add(database.file_keys())
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        return True

    def begin_with(self, backends: Iterable[StateBackend]) -> None:
        """Keep copies of the restored databases until the first checkpoint of the new chain contains them."""
        try:
            self._restored = _native_databases(backends, lambda backend: (backend.new_native_checkpoint(), ()))
        except Exception:
            log.warning("no native checkpoint could be made; the first snapshot will be a full one", exc_info=True)

    def forget(self) -> None:
        """Forget everything about the backends: the slot is about to replace or close them."""
        self._uploaded = UploadedFiles()
        self._discard_restored()

    # --- the first snapshot of a chain

    @property
    def begins_a_chain(self) -> bool:
        return bool(self._restored)

    def first(
        self, layout: CheckpointLayout, path: Location, header: dict[str, object], backends: Iterable[StateBackend]
    ) -> Callable[[], SnapshotRef]:
        """Return a function that writes the first snapshot: the restored databases, and the changes since then."""
        sections: list[Section] = []
        for backend in backends:
            if isinstance(backend, NativeState):
                sections += backend.delta_sections(on_native=True)
            else:
                sections += backend.full_sections()
        self._first = NativeSnapshot(layout, path, header, self._restored, sections, {})
        return self._first.write

    def checkpoint_completed(self) -> None:
        """Called when the checkpoint in flight is durable: the copies of restored databases are no longer needed."""
        if self._first is not None:
            self._uploaded.replace_with(self._first.files)
            self._discard_restored()

    def _discard_restored(self) -> None:
        _remove(self._restored)
        self._restored, self._first = [], None

    # --- the snapshots that replace a chain

    def start(
        self,
        layout: CheckpointLayout,
        path: Location,
        header: dict[str, object],
        backends: Iterable[StateBackend],
        chain: Sequence[SnapshotRef],
    ) -> NativeUpload | None:
        """Start a snapshot of the current state, between two epochs. Return None if that fails: deltas go on.

        `chain` is the chain of the last durable checkpoint. Raises `LocalDiskError` if the backend cannot write its own
        state to disk: then the slot cannot go on.
        """
        try:
            others = [backend for backend in backends if not isinstance(backend, NativeState)]
            sections = [section for backend in others for section in backend.full_sections()]
            databases = _native_databases(backends, lambda backend: backend.new_native_parts())
            shared = self._uploaded.named_by(chain)
            snapshot = NativeSnapshot(layout, path, header, databases, sections, shared)
        except LocalDiskError:
            raise
        except Exception:
            log.warning("making a native snapshot failed; deltas go on", exc_info=True)
            return None
        return NativeUpload(snapshot, databases, self._uploaded, self._background)


class NativeUpload:
    """Uploads one native snapshot in the background."""

    kind = "native"

    def __init__(
        self,
        snapshot: NativeSnapshot,
        databases: Sequence[NativeDatabase],
        uploaded: UploadedFiles,
        background: Background,
    ) -> None:
        self.names = snapshot.names
        self._snapshot = snapshot
        self._databases = databases
        self._uploaded = uploaded
        self._ref: Future[SnapshotRef | None] = background.start(f"native-{self.names[0]}", self._write)

    def _write(self) -> SnapshotRef | None:
        try:
            return self._snapshot.write()
        except Exception as error:
            if not self._snapshot.cancelled:
                warn_of_failure("native", error)
            return None
        finally:
            _remove(self._databases)

    def done(self) -> bool:
        """Return True if `result` will not block."""
        try:
            self._ref.result(0)
        except FutureTimeoutError:
            return False
        return True

    def result(self) -> SnapshotRef | None:
        """Return the snapshot, or None if the upload failed. Call once, when `done`."""
        ref = self._ref.result()
        if ref is not None:
            self._uploaded.replace_with(self._snapshot.files)
        return ref

    def kill(self) -> None:
        """Cancel the upload. The files sent so far are garbage."""
        self._snapshot.cancel()
        _remove(self._databases)


def _native_databases(
    backends: Iterable[StateBackend], parts_of: Callable[[NativeState], tuple[Path, Iterable[Section]]]
) -> list[NativeDatabase]:
    databases: list[NativeDatabase] = []
    try:
        for backend in backends:
            if isinstance(backend, NativeState):
                databases.append(NativeDatabase(backend.uid, backend.key_groups, *parts_of(backend)))
    except BaseException:
        _remove(databases)
        raise
    return databases


def _remove(databases: Iterable[NativeDatabase]) -> None:
    for database in databases:
        shutil.rmtree(database.directory, ignore_errors=True)


def _made(directory: Path | None) -> Path | None:
    if directory is not None:
        make_directory(directory)
    return directory
