"""What a keyed state backend is: state and timers of one operator partition, with a life in epochs.

    begin_epoch()
      current_key = ...; states are read and changed; timers are registered and fire
    delta_sections()          where a checkpoint ends: what changed since the last one, to be persisted
    commit_epoch(cut=...)     or rollback_epoch(): as if the epoch had not been
    checkpoint_completed()    or checkpoint_failed(): later, once it is known what became of the checkpoint

A checkpoint may span many epochs, and epochs go on while one is in flight; there is at most one. All calls come from
the processing thread, except `committed_value`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
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
    """The current key when there is none. Looking anything up with it raises, so that the hot path need not check."""

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
        """The key that plain states are about; set by the operator before each record and timer."""
        self.reads_ahead = False
        """Whether `prefetch` is worth the trouble now."""
        self.current_namespace: Any = None
        """With `current_key`, what namespaced states are about: a window."""
        self.processing_time_ms = 0
        """The epoch's `now`, for TTL; set by whoever runs the operator."""
        self.watermark = MIN_WATERMARK
        """The operator's watermark, for event-time TTL. While event-time timers fire, the timer's timestamp."""
        self.rollbacks = 0
        """How often state was taken back: who keeps something derived from state makes it anew when this changes."""
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
        """The state of that name, about `current_key`. The same object for the same name.

        `StateError` if the name is taken, or was restored, with another shape.
        """
        return self._get_state(descriptor, namespaced=False)

    def get_namespaced_state(self, descriptor: StateDescriptor) -> State:
        """The state of that name, about `current_key` and `current_namespace` (any hashable, picklable value)."""
        return self._get_state(descriptor, namespaced=True)

    @abstractmethod
    def get_folded_panes(self, name: str) -> FoldedPanes:
        """Accumulators of windows, which are used many at a time. A name is a state's, or that of panes."""

    @abstractmethod
    def get_element_panes(self, name: str) -> ElementPanes:
        """Elements of windows, which are used many at a time."""

    @abstractmethod
    def _get_state(self, descriptor: StateDescriptor, namespaced: bool) -> State: ...

    def prefetch(self, keys: Iterable[Any]) -> None:
        """Read what there is for `keys`, which are about to be used, if that costs less than one by one."""

    @abstractmethod
    def begin_epoch(self) -> None:
        """An epoch begins. What was changed since the last commit, outside any epoch, belongs to it."""

    @abstractmethod
    def check_types(self) -> None:
        """`TypeMismatchError` if the epoch wrote what does not fit the type declared for it. Before it is committed."""

    @abstractmethod
    def commit_epoch(self, *, cut: bool = False) -> None:
        """What the epoch changed is final, unless the whole job goes back to a checkpoint.

        With `cut` the epoch is the last one of a checkpoint that is now in flight.
        """

    @abstractmethod
    def checkpoint_completed(self) -> None:
        """The checkpoint in flight is durable. Between epochs."""

    @abstractmethod
    def checkpoint_failed(self) -> None:
        """There will be no such checkpoint: the next delta contains its changes too. Between epochs."""

    @abstractmethod
    def rewind(self) -> bool:
        """Go back to the last durable checkpoint (or to what was loaded); False if that cannot be done in memory."""

    @abstractmethod
    def rollback_epoch(self) -> None:
        """Take back all that changed since the last commit, timers included."""

    @abstractmethod
    def delta_sections(self) -> list[Section]:
        """What changed since the last checkpoint. Called once, after the last change of an epoch, if one is cut there.

        Cleans up a few expired entries first, which are then part of the changes.
        """

    @abstractmethod
    def full_sections(self) -> Iterator[Section]:
        """All that is there now except what has expired. State must not change while the sections are gone through."""

    @abstractmethod
    def load_section(self, section: Section) -> None:
        """Restore a section: those of a full snapshot first, then those of its deltas, in the order of the epochs.

        `section.key_group` must be one of `key_groups`. Not part of an epoch; before the first use of any state.
        """

    @abstractmethod
    def committed_value(self, state_name: str, key: Any, namespace: Any = None) -> Any:
        """What the last committed epoch left: a value, list or dict, an aggregate's result; None if there is nothing.

        May be called from another thread, also while an epoch is under way. The result must not be changed.
        """

    @abstractmethod
    def number_of_entries(self) -> int:
        """How many keys have something stored, summed over the states."""

    @abstractmethod
    def clear_current_key(self) -> None:
        """Clear all states of the current key, in all namespaces. Timers stay."""

    @abstractmethod
    def keys(self, state_name: str) -> list[Any]:
        """The keys that have something stored in that state."""

    @abstractmethod
    def state_names(self) -> list[str]:
        """The states that are there, restored or asked for."""
