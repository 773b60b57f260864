"""An operator's output that records everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Record:
    """A record that was emitted, to the main output (`tag_id` None) or to a side output."""

    value: Any
    timestamp: int | None = None
    tag_id: str | None = None


@dataclass(frozen=True)
class EmittedWatermark:
    """A watermark that was emitted."""

    watermark: int


@dataclass(frozen=True)
class EmittedIdle:
    """A change of idleness that was emitted."""

    idle: bool


Step = Record | EmittedWatermark | EmittedIdle


class RecordedOutput:
    """Implements `headwater.operators.base.Output`; `steps` has all that was emitted, in order."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def emit(self, values: list[Any], timestamps: list[int | None] | None) -> None:
        self._record(values, timestamps, None)

    def emit_side(self, tag_id: str, values: list[Any], timestamps: list[int | None] | None) -> None:
        self._record(values, timestamps, tag_id)

    def emit_watermark(self, watermark: int) -> None:
        self.steps.append(EmittedWatermark(watermark))

    def emit_idle(self, idle: bool) -> None:
        self.steps.append(EmittedIdle(idle))

    def _record(self, values: list[Any], timestamps: list[int | None] | None, tag_id: str | None) -> None:
        stamps = timestamps if timestamps is not None else [None] * len(values)
        # Operators promise lists of equal length: without this check, the harness would hide a lost timestamp.
        self.steps += [Record(value, stamp, tag_id) for value, stamp in zip(values, stamps, strict=True)]
