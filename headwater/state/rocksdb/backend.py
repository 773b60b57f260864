"""Keyed state in RocksDB: on the local disk, with a bounded part of it in memory."""

from __future__ import annotations

import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from headwater.common.errors import LocalDiskError, StateError
from headwater.common.machine.local_disk import room_for, says_no_room
from headwater.common.query_error import QueryError, QueryProblem
from headwater.state.evolution.migration import Convert
from headwater.state.registered import Registered
from headwater.state.rocksdb.database import Changes, Database, DatabaseView, take_over
from headwater.state.rocksdb.facts import Facts, store_timers, timer_sections
from headwater.state.rocksdb.home import RocksDBHome
from headwater.state.rocksdb.native import native_facts, read_native_sections
from headwater.state.rocksdb.options import RocksDBOptions
from headwater.state.rocksdb.store import RocksStore
from headwater.state.rocksdb.stores import STORES
from headwater.state.rocksdb.timers import RocksTimerQueue
from headwater.state.rocksdb.value import RocksValueState
from headwater.state.snapshot.entries import Entries, ValueEntries
from headwater.state.snapshot.layout import StateLayout
from headwater.state.snapshot.section import EVENT_TIMERS, PROCESSING_TIMERS, Section
from headwater.state.store_backend import StoreBackend
from headwater.state.ttl.expiring import TtlPolicy

_MAKE_ROOM = (
    "make room there, or let state.backend.rocksdb.localdir be a directory on a larger disk. Nothing is lost: state "
    "is restored from the last checkpoint"
)


_VIEWS_WANTED_SECONDS = 600.0
"""Old states of the database are kept for readers until nobody has asked for so long."""


class RocksDBKeyedStateBackend(StoreBackend[RocksStore]):
    """State that may be larger than memory. The database contains only committed state.

    The changes of the current epoch, and the timers that fire next, are in memory. The process must not fork while the
    backend is open: RocksDB has threads. `close()` or the end of the process deletes the working files. If the process
    is killed, the next process that uses the same directory deletes them.
    """

    def __init__(
        self, uid: str, max_parallelism: int, key_groups: range, options: RocksDBOptions | None = None
    ) -> None:
        super().__init__(uid, max_parallelism, key_groups)
        self._options = options or RocksDBOptions()
        self.memory = self._options.memory
        self.log_changes = self._options.log_changes
        self._timers: list[RocksTimerQueue] = []
        near = self._options.timers_in_memory
        if near is not None:
            kinds = (EVENT_TIMERS, PROCESSING_TIMERS)
            self._timers = [RocksTimerQueue(self, kind, near, self._write) for kind in kinds]
            self.event_timers, self.processing_timers = self._timers
        self._state_ids: dict[str, int] = {}
        self.damaged = False
        """The database may contain half an epoch, because a write failed."""
        self._converted_in_native: set[str] = set()
        """States that were already converted when the last native checkpoint was made."""
        self._views: dict[int, DatabaseView] = {}
        """{epoch of a durable checkpoint: the database when it was cut}: the last one, and those that are pinned."""
        self._cut_view: DatabaseView | None = None
        self._views_wanted_until = 0.0
        self._home = self._options.home()
        with self._room():
            self._open(self._home.new_directory())

    def _room(self) -> AbstractContextManager[None]:
        return room_for(f"operator '{self.uid}': RocksDB's working files", self._home.path, _MAKE_ROOM)

    def _open(self, directory: Path) -> None:
        try:
            self.database = Database(directory, self.memory.database_options())
        except BaseException as error:
            self._home.remove(directory)
            if says_no_room(str(error)):
                raise self._not_written(error.__cause__ or error) from error
            raise
        self._dispose = weakref.finalize(self, _dispose, self.database, self._home)

    def close(self) -> None:
        """Free the memory and delete the files. The backend must not be used afterwards, but may be closed again."""
        if self._dispose.alive:
            with self._boundary:
                self._closed = True
                self._views, self._cut_view = {}, None
                self._dispose()
            self._states = {}

    # -- states --------------------------------------------------------------------------------------------------------

    def _new_store(self, name: str, layout: StateLayout) -> RocksStore | None:
        store_class = STORES.get(layout.kind)
        if store_class is None:
            return None
        # A restored state keeps the id under which its entries are stored.
        known = self._state_ids
        state_id = known.setdefault(name, 1 + max(known.values(), default=0))
        return store_class(self, self._scope(layout), name, state_id, layout.namespaced)

    def prefetch(self, keys: Iterable[Any]) -> None:
        for registered in self._states.values():
            if isinstance(registered.store, RocksValueState) and not registered.layout.namespaced:
                registered.store.prefetch(keys)

    # -- epochs --------------------------------------------------------------------------------------------------------

    def begin_epoch(self) -> None:
        if self.damaged:
            raise StateError(
                f"operator '{self.uid}': an earlier epoch was written to RocksDB in part only; "
                f"state must be restored into a new backend"
            )
        super().begin_epoch()
        if self._views_are_wanted():
            with self._boundary:
                if self.durable_epoch not in self._views and not any(store.has_news for store in self._stores()):
                    self._views[self.durable_epoch] = self.database.view()

    def commit_epoch(self, *, cut: bool = False) -> None:
        stores = self._stores()
        changes = [store.collect() for store in stores]  # collect all before writing any: `collect` may raise
        changes += [queue.collect() for queue in self._timers]
        with self._boundary:
            for each in changes:
                self._write(each)
            for store in stores:
                store.committed_now(cut=cut)
            for queue in (self.event_timers, self.processing_timers):
                queue.commit(cut=cut or not self.log_changes)
                if not self.log_changes:
                    queue.checkpoint_completed()
            self._in_epoch = False
            if cut and self._views_are_wanted():
                self._cut_view = self.database.view()
        for store in stores:
            store.make_room()
        self.reads_ahead = any(store.overflows for store in stores if isinstance(store, RocksValueState))

    def checkpoint_failed(self) -> None:
        super().checkpoint_failed()
        self._cut_view = None

    def _settle_cut(self) -> tuple[int | None, bool]:
        what_to_keep = super()._settle_cut()
        if self._cut_view is not None:
            self._views[self.durable_epoch], self._cut_view = self._cut_view, None
        self._forget_views()
        return what_to_keep

    def _forget_before(self, epoch: int) -> None:
        super()._forget_before(epoch)
        self._forget_views()

    def _forget_views(self) -> None:
        needed = {*self._pins, self.durable_epoch}
        self._views = {epoch: view for epoch, view in self._views.items() if epoch in needed}

    def _views_are_wanted(self) -> bool:
        """Return True if somebody reads this state. A view holds memory and files, so others go without."""
        return (
            self._kept_readable
            or time.monotonic() < self._views_wanted_until
            or any(known.descriptor is not None and known.descriptor.is_queryable() for known in self._states.values())
        )

    def view(self, epoch: int) -> DatabaseView:
        self._views_wanted_until = time.monotonic() + _VIEWS_WANTED_SECONDS
        view = self._views.get(epoch)
        if view is None:
            raise QueryError(
                QueryProblem.NOT_YET,
                f"operator '{self.uid}': the last checkpoint cannot be read, because nobody has asked for some time; "
                f"the next one can: try again after it, ask for live values, or mark the state with set_queryable()",
            )
        return view

    def write_committed(self, changes: Changes, done: Callable[[], None]) -> None:
        with self._boundary:
            self._write(changes)
            done()

    def _write(self, changes: Changes) -> None:
        self.damaged = True
        try:
            self.database.write(changes)
        except Exception as error:  # rocksdict has no error class of its own
            raise self._not_written(error) from error
        self.damaged = False

    def _not_written(self, error: BaseException) -> LocalDiskError:
        return LocalDiskError(
            f"operator '{self.uid}': RocksDB's working files cannot be written to {self._home.path} ({error}); "
            f"{_MAKE_ROOM}"
        )

    def rewind(self) -> bool:
        """Return False: old values are not kept, so the checkpoint must be loaded."""
        return False

    def rollback_epoch(self) -> None:
        self.rollbacks += 1
        with self._boundary:
            for store in self._stores():
                store.rollback()
            self.event_timers.rollback()
            self.processing_timers.rollback()
            self._in_epoch = False

    def _stores(self) -> list[RocksStore]:
        return [registered.store for registered in self._states.values()]

    # -- sections ------------------------------------------------------------------------------------------------------

    def delta_sections(self, *, on_native: bool = False) -> list[Section]:
        if not self.log_changes:
            raise StateError(
                f"operator '{self.uid}': there is no delta, because changes are not logged; "
                f"take a native checkpoint, or set log_changes=True in RocksDBOptions"
            )
        sections: list[Section] = []
        for name, registered in self._states.items():
            self._clean_up(registered)
            store = registered.store
            log = store.changes()
            if registered.form.delta_is_whole() and not (on_native and name in self._converted_in_native):
                sections += self._full_sections_of(name, registered)
            for group, keys in store.by_key_group(store.keys_changed(log)).items():
                entries = store.delta_entries(keys, log)
                if entries:
                    sections.append(self._section(name, registered.layout, group, entries))
        sections += self.event_timers.delta_sections()
        sections += self.processing_timers.delta_sections()
        return sections

    def _full_entries(self, registered: Registered[RocksStore]) -> Iterator[tuple[int, Entries]]:
        return ((group, entries) for group in self.key_groups for entries in registered.store.full_entries(group))

    def _load_entries(self, store: RocksStore, entries: Entries) -> None:
        with self._boundary:
            self._write(store.load_entries(entries))
            store.loaded()

    def _convert(self, registered: Registered[RocksStore], convert: Convert) -> None:
        registered.store.pickler.start_over()
        for _, entries in self._full_entries(registered):
            self._load_entries(registered.store, entries.converted(convert, dated=registered.layout.ttl))

    # -- native checkpoints --------------------------------------------------------------------------------------------

    def native_checkpoint(self, directory: Path) -> None:
        """Copy the committed state, timers included, to the new `directory`, which must not exist.

        Called between epochs. A file that an earlier native checkpoint has too is a link to the same file and has the
        same name. The copy is complete when this returns. Its files never change; the caller owns them.
        """
        self._refuse_in_epoch()
        for store in self._stores():
            store.flush()
        self._copy_database(directory)

    def _refuse_in_epoch(self) -> None:
        if self._in_epoch:
            raise StateError(f"operator '{self.uid}': a native checkpoint can be made between two epochs only")

    def _copy_database(self, directory: Path) -> None:
        self._converted_in_native = {name for name, known in self._states.items() if known.form.converted}
        facts = Facts(
            self.uid,
            self.max_parallelism,
            (self.key_groups.start, self.key_groups.stop),
            {name: (self._state_ids[name], tuple(known.layout)) for name, known in self._states.items()},
            {name: classes for name, known in self._states.items() if (classes := known.store.pickler.classes())},
            any(known.store.pickler.has_stored_records for known in self._states.values()),
            {queue.kind: queue.facts() for queue in self._timers if queue.stored},
        )
        on_heap = [queue for queue in (self.event_timers, self.processing_timers) if queue.kind not in facts.timers]
        with self._boundary:
            self.database.set_facts(facts.to_dict())
            store_timers(self.database, [section for queue in on_heap for section in queue.full_sections()])
            self.database.checkpoint(directory)

    @property
    def local_directory(self) -> Path | None:
        return self._home.path

    def new_native_checkpoint(self) -> Path:
        return self._in_new_directory(self.native_checkpoint)

    def new_native_parts(self) -> tuple[Path, Iterator[Section]]:
        """Write only some of the waiting values to the database; the sections contain the others.

        Writing half a million values would stop the slot for seconds.
        """
        self._refuse_in_epoch()
        waiting = [
            (name, registered.layout, registered.store, registered.store.flush_some())
            for name, registered in self._states.items()
            if isinstance(registered.store, RocksValueState)
        ]

        def sections() -> Iterator[Section]:  # runs in any thread: waiting values are immutable
            for name, layout, store, values in waiting:
                for group, keys in store.by_key_group(values).items():
                    entries = ValueEntries.of_changed(keys, list(map(values.__getitem__, keys)), lambda _: True)
                    yield self._section(name, layout, group, entries)

        return self._in_new_directory(self._copy_database), sections()

    def _in_new_directory(self, make: Callable[[Path], None]) -> Path:
        directory = Path(tempfile.mkdtemp(prefix="checkpoint-", dir=self._home.path))
        directory.rmdir()  # only its unique name is needed: RocksDB makes the directory itself
        try:
            make(directory)
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        return directory

    def load_native(self, directory: Path) -> bool:
        """Restore what `native_checkpoint` made, before the first use of any state.

        Return True if the database now uses the very files of the checkpoint. Return False if the entries were loaded
        one by one, because key groups or classes differ, or because the timers must be on the heap.
        """
        if self._states:
            raise StateError(f"operator '{self.uid}' has state already; a native checkpoint is loaded before anything")
        facts = native_facts(directory)
        if facts.max_parallelism != self.max_parallelism:
            raise StateError(
                f"the native checkpoint in {directory} has {facts.max_parallelism} key groups, but operator "
                f"'{self.uid}' has {self.max_parallelism}; the number is fixed, set the maximum parallelism back"
            )
        if not facts.fits(self.key_groups, self.max_parallelism) or (facts.timers and not self._timers):
            for section in read_native_sections(directory, self.uid, self.key_groups):
                self.load_section(section)
            return False
        with self._room():
            path = self._home.new_directory()
            try:
                take_over(directory, path)
            except BaseException:
                self._home.remove(path)
                raise
        with self._boundary:
            self._dispose()
            self._open(path)
        self._state_ids = {name: state_id for name, (state_id, _) in facts.states.items()}
        for name, (_, layout) in facts.states.items():
            store = self._registered(name, StateLayout(*layout)).store
            store.loaded()
            store.pickler.loaded(facts.classes.get(name, ()))
        for queue in self._timers:
            if queue.kind in facts.timers:
                queue.restore(facts.timers[queue.kind])
        for section in timer_sections(self.database, self.uid):
            self.load_section(section)
        return True

    # -- all keys ------------------------------------------------------------------------------------------------------

    def number_of_entries(self) -> int:
        return sum(store.count() for store in self._stores())

    def _pairs_of(self, store: RocksStore, key: Any) -> list[Any]:
        return store.pairs_of(key)

    def _keys_to_examine(self, registered: Registered[RocksStore], policy: TtlPolicy) -> list[Any]:
        store = registered.store
        return store.next_keys(policy.number_to_examine(len(store.changed)))


def _dispose(database: Database, home: RocksDBHome) -> None:
    database.close()
    home.remove(database.path)
