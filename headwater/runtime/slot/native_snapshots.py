"""The databases of a slot, where its backends have such: taken over from snapshots, and made into new ones.

A native checkpoint is a directory of hard links, made between two epochs in no time. Its files are then sent beside the
processing; those that the storage has already are only named.
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
    """Of one slot, for the backends that it has at present. `forget` when it gets others."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._uploaded = UploadedFiles()
        self._restored: list[NativeDatabase] = []
        """The databases as they were when the slot began with the state of a job of another shape."""
        self._first: NativeSnapshot | None = None

    # --- restoring

    def load(self, backend: NativeState, database: StoredDatabase, key_groups: range, *, own: bool) -> bool:
        """Restore `backend` from a database, of which it is to have `key_groups`; False: read its sections instead.

        `own`: the snapshot is part of the chain that the slot goes on with, so its files need not be sent again.
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
        """What was just restored is the beginning of a new chain: keep it as it is until a checkpoint has it."""
        try:
            self._restored = _native_databases(backends, lambda backend: (backend.new_native_checkpoint(), ()))
        except Exception:
            log.warning("no native checkpoint could be made; the first snapshot will be a full one", exc_info=True)

    def forget(self) -> None:
        """Other backends take the place of these."""
        self._uploaded = UploadedFiles()
        self._discard_restored()

    # --- the first snapshot of a chain

    @property
    def begins_a_chain(self) -> bool:
        return bool(self._restored)

    def first(
        self, layout: CheckpointLayout, path: Location, header: dict[str, object], backends: Iterable[StateBackend]
    ) -> Callable[[], SnapshotRef]:
        """What writes the first snapshot: the databases as they were restored, and what changed since."""
        sections: list[Section] = []
        for backend in backends:
            if isinstance(backend, NativeState):
                sections += backend.delta_sections(on_native=True)
            else:
                sections += backend.full_sections()
        self._first = NativeSnapshot(layout, path, header, self._restored, sections, {})
        return self._first.write

    def checkpoint_completed(self) -> None:
        """The checkpoint in flight is durable."""
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
        """Make a snapshot of the state as it is, between two epochs. None if that fails: then deltas go on.

        `LocalDiskError` if the state itself cannot be written: then it cannot go on either. `chain` is that of the last
        durable checkpoint.
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
    """A native snapshot on its way to the storage."""

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
        """Whether `result` will not block."""
        try:
            self._ref.result(0)
        except FutureTimeoutError:
            return False
        return True

    def result(self) -> SnapshotRef | None:
        """The snapshot, or None if it could not be written. Call once, when done."""
        ref = self._ref.result()
        if ref is not None:
            self._uploaded.replace_with(self._snapshot.files)
        return ref

    def kill(self) -> None:
        """Nobody wants it any more. What was sent is garbage."""
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
