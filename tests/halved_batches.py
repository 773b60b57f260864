"""Cuts every batch in two, so that faults can strike in the middle of a chunk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.runtime.epoch import fault
from headwater.runtime.stage.runner import StageRunner


def halved(batch: Callable[..., None]) -> Callable[..., None]:
    """A `StageRunner.batch` that reaches the step "mid-chunk" between two halves."""

    def in_two(self: StageRunner, edge: int, values: list[Any], timestamps: list[int | None] | None) -> None:
        half = len(values) // 2
        batch(self, edge, values[:half], timestamps[:half] if timestamps else None)
        fault.reached("mid-chunk", self.epoch)
        batch(self, edge, values[half:], timestamps[half:] if timestamps else None)

    return in_two
