"""What users implement for joins of two streams: Flink's Java interfaces in PyFlink's spelling. PyFlink has none.

A function must not change the records that it gets: they stay in state and meet further partners.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from headwater.operators.functions.plain import Function


class JoinFunction(Function):
    """For a window join: one result per pair."""

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """Return the result for a pair with one key in one window."""


class FlatJoinFunction(Function):
    """For a window join: any number of results per pair."""

    @abstractmethod
    def join(self, first: Any, second: Any) -> Iterable[Any] | None:
        """Yield, or return an iterable of, the results for a pair with one key in one window."""


class CoGroupFunction(Function):
    """For a window co-group: sees all records of one key and window at once."""

    @abstractmethod
    def co_group(self, first: list[Any], second: list[Any]) -> Iterable[Any] | None:
        """Yield the results for one key and window. One of the lists may be empty, which allows outer joins."""


class ProcessJoinFunction(Function):
    """For an interval join: sees each pair."""

    class Context(ABC):
        """Valid only during the call it is handed to: the object is reused for the next pair."""

        @abstractmethod
        def get_left_timestamp(self) -> int | None:
            """The left record's timestamp; None if there is no left record."""

        @abstractmethod
        def get_right_timestamp(self) -> int | None:
            """The right record's timestamp; None if there is no right record."""

        @abstractmethod
        def get_timestamp(self) -> int:
            """The timestamp of the results: the later timestamp of the pair."""

    @abstractmethod
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterable[Any] | None:
        """Process a pair: yield results, and `output_tag, result` for a side output.

        In an outer join, `left` or `right` is None if a record has found no partner.
        """
