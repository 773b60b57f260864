"""State as rows, from `SavepointReader`. Rows are read while the caller iterates, a few key groups at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from headwater.checkpoint.savepoint.savepoint import Where
from headwater.state_processor.stored import StoredState
from headwater.state_processor.windows import StoredWindows

if TYPE_CHECKING:
    from headwater.runtime.spark.state_frames import DataFrame, SparkSession, StructType

_RANGES: Final = 16
"""Number of parts in which one process reads all key groups, so that only one part is in memory at once."""


class KeyedRow(NamedTuple):
    key: Any
    namespace: Any
    """The window, if the state is per window."""
    value: Any
    """A value, list or dict; of a reducing state the value, of an aggregating state the accumulator."""


class OperatorRow(NamedTuple):
    partition: int
    value: Any


class BroadcastRow(NamedTuple):
    key: Any
    value: Any


class TimerRow(NamedTuple):
    time_domain: str
    """'event' or 'processing'"""
    timestamp_ms: int
    key: Any
    namespace: Any


class WindowRow(NamedTuple):
    key: Any
    start_ms: int | None
    """None: not a window of time."""
    end_ms: int | None
    """None if the state has only the start, as for windows and slices of a fixed size."""
    contents: Any
    """An accumulator, or the list of elements."""


class StateRows(ABC):
    """Rows of one state. Can be iterated any number of times. Picklable: each Spark task reads its share."""

    columns: ClassVar[tuple[str, ...]]

    def __init__(self, path: Where, uid: str, name: str = "") -> None:
        self.path = path
        self.uid = uid
        self.name = name

    def __iter__(self) -> Iterator[Any]:
        stored = StoredState(self.path)
        for groups in self.splits(_RANGES):
            yield from self._read(stored, groups)

    def splits(self, number: int) -> list[range]:
        """Return about `number` ranges of key groups, each of which can be read on its own."""
        groups = StoredState(self.path).max_parallelism
        number = max(1, min(number, groups))
        bounds = [index * groups // number for index in range(number + 1)]
        return [range(start, stop) for start, stop in pairwise(bounds)]

    def read(self, split: range) -> Iterator[Any]:
        """The rows of one of `splits`."""
        return self._read(StoredState(self.path), split)

    @abstractmethod
    def _read(self, stored: StoredState, groups: range) -> Iterator[Any]: ...

    def to_dataframe(self, spark: SparkSession, schema: StructType | str | None = None) -> DataFrame:
        """Return the rows as a DataFrame with `columns`. Each Spark task reads a range of key groups.

        Without `schema`, types are inferred from the first rows; dataclasses, NamedTuples and Rows become structs. A
        column without a value in any of the first rows is left out.
        """
        from headwater.runtime.spark.state_frames import state_frame

        return state_frame(spark, self, schema)


class KeyedRows(StateRows):
    columns = KeyedRow._fields

    def _read(self, stored: StoredState, groups: range) -> Iterator[KeyedRow]:
        state = stored.keyed(self.uid, groups, {self.name})
        if self.name in state.state_names():
            for key, namespace, value in state.entries(self.name):
                yield KeyedRow(key, namespace, value)


class TimerRows(StateRows):
    columns = TimerRow._fields

    def _read(self, stored: StoredState, groups: range) -> Iterator[TimerRow]:
        state = stored.keyed(self.uid, groups, set(), timers=True)
        for domain, queue in (("event", state.event_timers), ("processing", state.processing_timers)):
            for timestamp, key, namespace in queue.timers():
                yield TimerRow(domain, timestamp, key, namespace)


class WindowRows(StateRows):
    columns = WindowRow._fields

    def _read(self, stored: StoredState, groups: range) -> Iterator[WindowRow]:
        for window in StoredWindows(stored, self.uid, groups):
            yield WindowRow(window.key, window.start_ms, window.end_ms, window.contents)


class OperatorRows(StateRows):
    columns = OperatorRow._fields

    def splits(self, number: int) -> list[range]:
        return [range(0)]

    def _read(self, stored: StoredState, groups: range) -> Iterator[OperatorRow]:
        for (_, partition), backend in stored.unkeyed(self.uid):
            for element in backend.committed_list(self.name):
                yield OperatorRow(partition, element)


class BroadcastRows(StateRows):
    """Rows of a broadcast state, from the first partition: every partition has the same."""

    columns = BroadcastRow._fields

    def splits(self, number: int) -> list[range]:
        return [range(0)]

    def _read(self, stored: StoredState, groups: range) -> Iterator[BroadcastRow]:
        for _, backend in stored.unkeyed(self.uid):
            found = backend.committed_broadcast(self.name)
            if found:
                yield from (BroadcastRow(key, value) for key, value in found.items())
                return
