"""Finds windows in the state of their operator. Each kind of window stores its contents differently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from headwater.common.errors import StateError
from headwater.operators.window.base import CONTENTS, PANES, SESSIONS, SLICES
from headwater.operators.window.operator import MERGING_WINDOWS
from headwater.state_processor.stored import StoredState
from headwater.time.windows import TimeWindow, window_of

WINDOW_STATES: Final = (PANES, SLICES, CONTENTS, SESSIONS)
_SESSION_ELEMENTS: Final = f"{SESSIONS}:elements"


class StoredWindow(NamedTuple):
    key: Any
    start_ms: int | None
    end_ms: int | None
    contents: Any
    name: str
    """Name of the state that has the contents."""
    namespace: Any
    """Namespace of the contents. None: a session, which is stored with the other sessions of the key."""


class Change(NamedTuple):
    """What to store in a state for a key, so that a window has other contents."""

    name: str
    namespace: Any
    value: Any


class StoredWindows:
    """The windows of one operator that have not ended."""

    def __init__(self, stored: StoredState, uid: str, groups: range | None = None) -> None:
        groups = range(stored.max_parallelism) if groups is None else groups
        self._uid = uid
        self._state = stored.keyed(uid, groups, {*WINDOW_STATES, _SESSION_ELEMENTS, MERGING_WINDOWS})
        self._sessions: dict[Any, Any] = {}  # {key: all its sessions}, those that were changed
        self._found: dict[tuple[Any, int | None, int | None], StoredWindow] | None = None

    def __iter__(self) -> Iterator[StoredWindow]:
        state = self._state
        names = set(state.state_names())
        for name in names & {PANES, SLICES}:
            for key, start, contents in state.entries(name):
                yield StoredWindow(key, start, None, contents, name, start)
        if CONTENTS in names:
            # A merged window keeps its content in the namespace of its first part.
            merged = {
                (key, place): window
                for key, _, windows in (state.entries(MERGING_WINDOWS) if MERGING_WINDOWS in names else ())
                for window, place in windows
            }
            for key, namespace, contents in state.entries(CONTENTS):
                window = window_of(merged.get((key, namespace), namespace))
                start, end = (window.start, window.end) if isinstance(window, TimeWindow) else (None, None)
                yield StoredWindow(key, start, end, contents, CONTENTS, namespace)
        if SESSIONS in names:
            buffered = _SESSION_ELEMENTS in names
            for key, _, sessions in state.entries(SESSIONS):
                for start, end, number, held in sessions:
                    if buffered:
                        contents = state.committed_value(_SESSION_ELEMENTS, key, number)
                        yield StoredWindow(key, start, end, contents, _SESSION_ELEMENTS, number)
                    else:
                        yield StoredWindow(key, start, end, held, SESSIONS, None)

    def changed(self, key: Any, start_ms: int | None, end_ms: int | None, contents: Any) -> Change:
        """Return the change that gives that window other `contents`. Later calls assume that the change was made."""
        if contents is None:
            raise StateError(
                f"a window of operator '{self._uid}', key {key!r}, is to contain None; expected contents in the form "
                "in which SavepointReader.windows() shows them"
            )
        if self._found is None:
            self._found = {(window.key, window.start_ms, window.end_ms): window for window in self}
        window = self._found.get((key, start_ms, end_ms))
        if window is None:
            raise StateError(
                f"operator '{self._uid}' has no window of key {key!r} from {start_ms} to {end_ms}; windows can be "
                "changed, not made: give those that SavepointReader.windows() shows"
            )
        if window.name != SESSIONS:
            return Change(window.name, window.namespace, contents)
        before = self._sessions.get(key) or self._state.committed_value(SESSIONS, key)
        sessions = self._sessions[key] = tuple(
            (start, end, number, contents if (start, end) == (start_ms, end_ms) else held)
            for start, end, number, held in before
        )
        return Change(SESSIONS, None, sessions)
