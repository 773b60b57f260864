"""Reads the state in a savepoint or a retained checkpoint."""

from __future__ import annotations

from headwater.checkpoint.savepoint.savepoint import Where
from headwater.common.errors import StateError
from headwater.state.snapshot.section import BROADCAST, KEYED, OPERATOR
from headwater.state_processor.rows import (
    BroadcastRows,
    KeyedRows,
    OperatorRows,
    TimerRows,
    WindowRows,
)
from headwater.state_processor.stored import StateInfo, StoredState
from headwater.state_processor.windows import WINDOW_STATES


class SavepointReader:
    """The state in a savepoint, as rows: iterate over them in Python, or make a DataFrame of them.

    `path` is what `open_savepoint` takes. The classes of keys and values must be importable. Never changes anything.
    """

    def __init__(self, path: Where) -> None:
        self._path = path
        self._stored = StoredState(path)
        self.manifest = self._stored.manifest

    def operators(self) -> dict[str, str]:
        """{uid: name} of the operators that have state."""
        return dict(self.manifest.operators)

    def states(self) -> list[StateInfo]:
        """Return all states in the savepoint."""
        return self._stored.catalogue()

    def keyed_state(self, uid: str, name: str) -> KeyedRows:
        """(key, namespace, value) of one keyed state, including expired entries that were not cleaned up."""
        self._stored.check_state(uid, name, KEYED)
        return KeyedRows(self._path, uid, name)

    def operator_state(self, uid: str, name: str) -> OperatorRows:
        """(partition, value) of one list state of an operator."""
        self._stored.check_state(uid, name, OPERATOR)
        return OperatorRows(self._path, uid, name)

    def broadcast_state(self, uid: str, name: str) -> BroadcastRows:
        """(key, value) of one broadcast state."""
        self._stored.check_state(uid, name, BROADCAST)
        return BroadcastRows(self._path, uid, name)

    def timers(self, uid: str) -> TimerRows:
        """(time domain, timestamp, key, namespace) of all timers of an operator."""
        self._stored.check_uid(uid)
        return TimerRows(self._path, uid)

    def windows(self, uid: str) -> WindowRows:
        """(key, start, end, contents) of the windows that have not ended, or of their slices."""
        self._stored.check_uid(uid)
        names = {info.name for info in self.states() if info.uid == uid}
        if names and not names & set(WINDOW_STATES):
            raise StateError(
                f"operator '{uid}' is not a window: it has the states {', '.join(sorted(names))}; read them with "
                "keyed_state()"
            )
        return WindowRows(self._path, uid)
