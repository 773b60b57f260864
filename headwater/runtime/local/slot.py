"""A slot that shares its process with the whole job, and with whatever else runs there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.checkpoint.snapshot.file import SnapshotRef
from headwater.runtime.slot.full_snapshot import FullSnapshot
from headwater.runtime.slot.garbage import GarbageCollection
from headwater.runtime.slot.query.answers import Session
from headwater.runtime.slot.slot import Slot


class InProcessSlot(Slot):
    """Does not fork, and leaves Python's garbage collector as it is."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._garbage = _LeftToPython()
        self.session = Session(self)

    def vanish(self) -> None:
        """Give back what a killed process would: no function is closed, nothing is written."""
        self.readable = None
        self._drop_full()
        self._close_backends()

    def _write_full(self, name: str, write: Callable[[], SnapshotRef]) -> FullSnapshot:
        return WrittenFull(name, write())


class _LeftToPython(GarbageCollection):
    def begin_epoch(self) -> None: ...

    def state_loaded(self) -> None: ...

    def epoch_ended(self) -> None: ...


class WrittenFull:
    """A full snapshot that is there already."""

    kind = "full"

    def __init__(self, name: str, ref: SnapshotRef) -> None:
        self.names = (name,)
        self._ref = ref

    def done(self) -> bool:
        return True

    def result(self) -> SnapshotRef:
        return self._ref

    def kill(self) -> None: ...
