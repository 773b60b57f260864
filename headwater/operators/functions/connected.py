"""What users implement for two connected streams. Pure interfaces, as in `pyflink.datastream.functions`.

One instance sees both streams, one record at a time. The order of two records of different streams is not defined, as
in Flink, unless their event times differ.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from headwater.operators.functions.plain import Function, KeyedProcessFunction, ProcessFunction


class CoMapFunction(Function):
    """One record in, one out; None drops the record, as in PyFlink."""

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """Return the record that takes the place of `value` of the first stream."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """Return the record that takes the place of `value` of the second stream."""


class CoFlatMapFunction(Function):
    """One record in, any number out."""

    @abstractmethod
    def flat_map1(self, value: Any) -> Iterable[Any] | None:
        """Yield, or return an iterable of, what takes the place of `value` of the first stream."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Iterable[Any] | None:
        """Yield, or return an iterable of, what takes the place of `value` of the second stream."""


class CoProcessFunction(Function):
    """Sees the records of both streams with their timestamps and the clocks; emits by `yield`.

    On two keyed streams it may use keyed state, too; for timers use a `KeyedCoProcessFunction`.
    """

    Context = ProcessFunction.Context

    @abstractmethod
    def process_element1(self, value: Any, ctx: ProcessFunction.Context) -> Iterable[Any] | None:
        """Process a record of the first stream: yield results, and `output_tag, result` for a side output."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: ProcessFunction.Context) -> Iterable[Any] | None:
        """Process a record of the second stream."""


class KeyedCoProcessFunction(Function):
    """Sees the records of two keyed streams with the state and the timers of their key, which both streams share."""

    Context = KeyedProcessFunction.Context
    OnTimerContext = KeyedProcessFunction.OnTimerContext

    @abstractmethod
    def process_element1(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any] | None:
        """Process a record of the first stream: yield results, and `output_tag, result` for a side output."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any] | None:
        """Process a record of the second stream."""

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any] | None:
        """A timer of the current key is due. Results get the timer's timestamp."""
        return None
