"""The settings of a windowed stream, as plain picklable data: the window operators are made from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headwater.common.output_tag import OutputTag
from headwater.time.assigners import MergingWindowAssigner, WindowAssigner
from headwater.time.evictors import Evictor
from headwater.time.triggers import Trigger


@dataclass(frozen=True)
class Reduced:
    """A window has one value, into which each element is reduced."""

    function: Any
    """A `ReduceFunction`, or a callable of two values."""


@dataclass(frozen=True)
class Aggregated:
    """A window has one accumulator."""

    function: Any
    """An `AggregateFunction`."""


@dataclass(frozen=True)
class Buffered:
    """A window has all its elements."""


Contents = Reduced | Aggregated | Buffered


@dataclass(frozen=True)
class WindowSettings:
    """One window operation."""

    assigner: WindowAssigner[Any, Any]
    trigger: Trigger[Any, Any]
    contents: Contents
    function: Any = None
    """A (Process)(All)WindowFunction; None: the reduced value, or the aggregate's result, is the result."""
    evictor: Evictor | None = None
    allowed_lateness_ms: int = 0
    late_data_tag: OutputTag | None = None
    whole_panes: bool = False
    """Keep each window as a pane of its own, which a query can look up, even if sliding windows could share slices."""

    @property
    def merging(self) -> bool:
        return isinstance(self.assigner, MergingWindowAssigner)
