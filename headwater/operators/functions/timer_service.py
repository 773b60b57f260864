"""Timers and clocks as user functions see them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from headwater.common.errors import StateError

if TYPE_CHECKING:
    from headwater.operators.base import OperatorContext
    from headwater.state.keyed_backend import KeyedStateBackend


class TimerService(ABC):
    """Tells the time and sets timers for the current key. Timestamps are milliseconds since the Unix epoch.

    Key, clock and timestamp identify a timer: if it is registered twice, it fires once.
    """

    @abstractmethod
    def current_processing_time(self) -> int:
        """The epoch's processing time: the same for all records of an epoch, and the same again on replay."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The operator's watermark; `headwater.common.ids.MIN_WATERMARK` before the first one."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Call `on_timer` for the current key once processing time has reached `timestamp`."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Call `on_timer` for the current key once the watermark has reached `timestamp`.

        A timer behind the watermark is not lost: it fires with the next watermark.
        """

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Forget the current key's timer. Does nothing if there is none."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Forget the current key's timer. Does nothing if there is none."""


class KeyedTimerService(TimerService):
    """Timers of a keyed operator, kept in its state backend."""

    def __init__(self, context: OperatorContext, backend: KeyedStateBackend) -> None:
        self._context = context
        self._backend = backend
        self._event_timers = backend.event_timers
        self._processing_timers = backend.processing_timers

    def current_processing_time(self) -> int:
        return self._context.processing_time_ms

    def current_watermark(self) -> int:
        return self._context.watermark

    def register_processing_time_timer(self, timestamp: int) -> None:
        self._processing_timers.register(whole_timestamp(timestamp), self._backend.current_key)

    def register_event_time_timer(self, timestamp: int) -> None:
        self._event_timers.register(whole_timestamp(timestamp), self._backend.current_key)

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self._processing_timers.delete(whole_timestamp(timestamp), self._backend.current_key)

    def delete_event_time_timer(self, timestamp: int) -> None:
        self._event_timers.delete(whole_timestamp(timestamp), self._backend.current_key)


class UnkeyedTimerService(TimerService):
    """The clocks of an operator without keys; it cannot have timers, because a timer belongs to a key."""

    def __init__(self, context: OperatorContext) -> None:
        self._context = context

    def current_processing_time(self) -> int:
        return self._context.processing_time_ms

    def current_watermark(self) -> int:
        return self._context.watermark

    def register_processing_time_timer(self, timestamp: int) -> None:
        raise self._refusal()

    def register_event_time_timer(self, timestamp: int) -> None:
        raise self._refusal()

    def delete_processing_time_timer(self, timestamp: int) -> None:
        raise self._refusal()

    def delete_event_time_timer(self, timestamp: int) -> None:
        raise self._refusal()

    def _refusal(self) -> StateError:
        return StateError(
            f"operator '{self._context.name}' used a timer on a stream that is not keyed; timers belong to a key: "
            "call key_by(...) before process(...) and use a KeyedProcessFunction"
        )


def whole_timestamp(timestamp: int) -> int:
    """Return `timestamp` as an int. Accepts a whole float, which a division easily makes of an int."""
    if timestamp.__class__ is int:
        return timestamp
    try:
        whole = int(timestamp)
    except (TypeError, ValueError, OverflowError):
        whole = None
    if whole is None or whole != timestamp or isinstance(timestamp, bool):
        raise StateError(f"a timer needs a whole number of milliseconds, found {timestamp!r}; round it first")
    return whole
