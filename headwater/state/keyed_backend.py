"""The interface of keyed state backends: the state and timers of one operator partition, and their life in epochs.

    begin_epoch()
      current_key = ...; states are read and changed; timers are registered and fire
    delta_sections()          only if a checkpoint is cut here: what changed since the last checkpoint
    commit_epoch(cut=...)     or rollback_epoch(): undo the epoch
    checkpoint_completed()    or checkpoint_failed(): later, when the checkpoint settles

A checkpoint may span many epochs, and epochs go on while one is in flight; there is at most one. All calls come from
the processing thread, except `committed_value` and those of `ReadableBackend`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, overload

from headwater.common.errors import StateError
from headwater.common.ids import MIN_WATERMARK
from headwater.state.api import AggregatingState, ListState, MapState, ReducingState, State, ValueState
from headwater.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from headwater.state.panes import ElementPanes, FoldedPanes
from headwater.state.snapshot.section import EVENT_TIMERS, PROCESSING_TIMERS, Section
from headwater.state.timers import TimerQueue


class _NoKey:
    """Stands for "no current key". Any look-up with it raises, so the hot path need not check."""

    def __hash__(self) -> int:
        raise StateError(
            "there is no current key: keyed state can be used in process_element and on_timer, not in open() or close()"
        )

    def __repr__(self) -> str:
        return "NO_KEY"


NO_KEY: Final = _NoKey()


class KeyedStateBackend(ABC):
    """Keyed state and timers of one operator (`uid`) for the key groups that one partition owns."""

    def __init__(self, uid: str, max_parallelism: int, key_groups: range) -> None:
        self.uid = uid
        self.max_parallelism = max_parallelism
        self.key_groups = key_groups
        self.current_key: Any = NO_KEY
        """States read and write the entry of this key. The operator sets it before each record and timer."""
        self.reads_ahead = False
        """True while `prefetch` saves time."""
        self.current_namespace: Any = None
        """Namespaced states read and write the entry of `current_key` and this namespace, which is a window."""
        self.processing_time_ms = 0
        """The epoch's `now`, for TTL. The runner sets it."""
        self.watermark = MIN_WATERMARK
        """The operator's watermark, for event-time TTL. While event-time timers fire: the timer's timestamp."""
        self.rollbacks = 0
        """How often state was rolled back or rewound. When it changes, rebuild whatever is derived from state."""
        self.event_timers = TimerQueue(uid, EVENT_TIMERS, max_parallelism)
        self.processing_timers = TimerQueue(uid, PROCESSING_TIMERS, max_parallelism)

    @overload
    def get_state(self, descriptor: ValueStateDescriptor) -> ValueState[Any]: ...
    @overload
    def get_state(self, descriptor: ListStateDescriptor) -> ListState[Any]: ...
    @overload
    def get_state(self, descriptor: MapStateDescriptor) -> MapState[Any, Any]: ...
    @overload
    def get_state(self, descriptor: ReducingStateDescriptor) -> ReducingState[Any]: ...
    @overload
    def get_state(self, descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]: ...
    @overload
    def get_state(self, descriptor: StateDescriptor) -> State: ...
    def get_state(self, descriptor: StateDescriptor) -> State:
        """Return the state of that name, for `current_key`. The same name gives the same object.

        Raises `StateError` if a state of that name exists, or was restored, with another shape.
        """
        return self._get_state(descriptor, namespaced=False)

    def get_namespaced_state(self, descriptor: StateDescriptor) -> State:
        """Return the state of that name, for `current_key` and `current_namespace` (any hashable, picklable value)."""
        return self._get_state(descriptor, namespaced=True)

    @abstractmethod
    def get_folded_panes(self, name: str) -> FoldedPanes:
        """Return panes for the accumulators of windows, used many at a time. States and panes must not share a name."""

    @abstractmethod
    def get_element_panes(self, name: str) -> ElementPanes:
        """Return panes for the elements of windows, used many at a time."""

    def describe_panes(self, name: str, size_ms: int, result_of: Callable[[Any], Any] | None) -> None:
        """Say how panes are shown to readers: how long they are, and what `result_of` makes of a value."""

    def keep_readable(self) -> None:
        """Keep the last checkpoint readable for queries, even if nobody asks for a long time."""

    @abstractmethod
    def _get_state(self, descriptor: StateDescriptor, namespaced: bool) -> State: ...

    def prefetch(self, keys: Iterable[Any]) -> None:
        """Read the state of `keys`, which are about to be used, if reading them together is cheaper."""

    @abstractmethod
    def begin_epoch(self) -> None:
        """Begin an epoch. Changes made outside of epochs, since the last commit, belong to it."""

    @abstractmethod
    def check_types(self) -> None:
        """Raise `TypeMismatchError` if a value that the epoch wrote does not fit its type. Called before the commit."""

    @abstractmethod
    def commit_epoch(self, *, cut: bool = False) -> None:
        """Make the epoch's changes final, unless the whole job goes back to a checkpoint.

        With `cut`, a checkpoint ends with this epoch and is now in flight.
        """

    @abstractmethod
    def checkpoint_completed(self) -> None:
        """The checkpoint in flight is durable. Called between epochs."""

    @abstractmethod
    def checkpoint_failed(self) -> None:
        """The checkpoint in flight failed: the next delta must contain its changes too. Called between epochs."""

    @abstractmethod
    def rewind(self) -> bool:
        """Go back to the last durable checkpoint, or to the loaded state. Return False if only a reload can do that."""

    @abstractmethod
    def rollback_epoch(self) -> None:
        """Undo all changes since the last commit, timers included."""

    @abstractmethod
    def delta_sections(self) -> list[Section]:
        """Return what changed since the last checkpoint. Called once per cut, after the last change of its epoch.

        Removes a few expired entries first; these removals are part of the delta.
        """

    @abstractmethod
    def full_sections(self) -> Iterator[Section]:
        """Yield the whole state except expired entries. State must not change while the caller iterates."""

    @abstractmethod
    def load_section(self, section: Section) -> None:
        """Restore one section. The caller loads a full snapshot first, then its deltas in the order of their epochs.

        `section.key_group` must be one of `key_groups`. Called outside of epochs, before the first use of any state.
        """

    @abstractmethod
    def committed_value(self, state_name: str, key: Any, namespace: Any = None) -> Any:
        """Return the state after the last committed epoch: a value, list, dict or aggregate result; None if none.

        Any thread may call this, also during an epoch. The caller must not change the result.
        """

    @abstractmethod
    def number_of_entries(self) -> int:
        """Return the number of keys with an entry, summed over all states."""

    @abstractmethod
    def clear_current_key(self) -> None:
        """Clear all states of the current key, in all namespaces. Timers stay."""

    @abstractmethod
    def keys(self, state_name: str) -> list[Any]:
        """Return the keys that have an entry in that state."""

    @abstractmethod
    def state_names(self) -> list[str]:
        """Return the names of all states that were restored or asked for."""
