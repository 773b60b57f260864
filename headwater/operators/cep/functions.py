"""What users implement to see matches: Flink's Java interfaces in Python spelling."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from headwater.common.output_tag import OutputTag
from headwater.operators.functions.plain import Function


class PatternProcessFunction(Function):
    """Sees each match. With a method `process_timed_out_match(match, ctx)` it also sees partial ones out of time."""

    class Context(ABC):
        """Valid only during the call it is handed to."""

        @abstractmethod
        def timestamp(self) -> int:
            """When the match was complete: its last event's timestamp, or the end of its time. Results have it."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The epoch's processing time."""

        @abstractmethod
        def output(self, output_tag: OutputTag, value: Any) -> None:
            """Emit to a side output; `yield output_tag, value` does the same."""

    @abstractmethod
    def process_match(self, match: dict[str, list[Any]], ctx: PatternProcessFunction.Context) -> Iterable[Any] | None:
        """Yield the results for a match: {step: its events}. A step without events is not in it."""


class PatternSelectFunction(Function):
    """One result per match."""

    @abstractmethod
    def select(self, pattern: dict[str, list[Any]]) -> Any:
        """Return the result for a match."""


class PatternFlatSelectFunction(Function):
    """Any number of results per match."""

    @abstractmethod
    def flat_select(self, pattern: dict[str, list[Any]]) -> Iterable[Any] | None:
        """Yield the results for a match."""


class PatternTimeoutFunction(Function):
    """One result per partial match that ran out of time."""

    @abstractmethod
    def timeout(self, pattern: dict[str, list[Any]], timeout_timestamp: int) -> Any:
        """Return the result; `timeout_timestamp` is when the time was over."""
