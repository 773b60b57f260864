"""Turns timestamps into watermarks: the logic behind the settings of `common.watermark_strategy`.

The settings are data, shared by all partitions; an object made here belongs to one split or partition. Its `state()` is
a small picklable value which the operator keeps, so that a watermark survives epochs, rollbacks and restores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import cloudpickle

from headwater.common.errors import ConfigurationError, TypeMismatchError
from headwater.common.ids import MIN_WATERMARK
from headwater.common.watermark_strategy import WatermarkGenerator, WatermarkKind, WatermarkOutput, WatermarkStrategy


class WatermarkLogic(ABC):
    """Turns the timestamps of batches into watermarks. Never asked about records whose timestamp is missing or bad."""

    @abstractmethod
    def on_batch(self, highest_timestamp: int) -> None:
        """Note a batch and its highest timestamp."""

    @abstractmethod
    def periodic(self) -> int:
        """Return the watermark now; MIN_WATERMARK if there is none. The operator ignores one that goes back."""

    @abstractmethod
    def state(self) -> Any:
        """Return what `restore` needs to continue from here: an immutable value."""

    @abstractmethod
    def restore(self, state: Any) -> None:
        """Continue from the `state` of a logic of the same kind."""


class NoWatermarks(WatermarkLogic):
    """Event time does not advance until the input ends."""

    def on_batch(self, highest_timestamp: int) -> None:
        pass

    def periodic(self) -> int:
        return MIN_WATERMARK

    def state(self) -> Any:
        return None

    def restore(self, state: Any) -> None:
        pass


class BoundedOutOfOrderness(WatermarkLogic):
    """Trails the highest timestamp by `delay_ms`, and by one more: records with that very timestamp may still come.

    With a delay of 0 it is the strategy for timestamps that only ever grow.
    """

    def __init__(self, delay_ms: int) -> None:
        self._delay_ms = delay_ms
        self._highest = MIN_WATERMARK

    def on_batch(self, highest_timestamp: int) -> None:
        if highest_timestamp > self._highest:
            self._highest = highest_timestamp

    def periodic(self) -> int:
        return max(self._highest - self._delay_ms - 1, MIN_WATERMARK)

    def state(self) -> Any:
        return self._highest

    def restore(self, state: Any) -> None:
        self._highest = state


class GeneratedWatermarks(WatermarkLogic, WatermarkOutput):
    """Runs a user's generator; is itself the output that the generator writes to."""

    def __init__(self, generator: WatermarkGenerator) -> None:
        self._generator = generator
        self._emitted = MIN_WATERMARK
        self.marked_idle: bool | None = None
        """What the generator said last about idleness; None if nothing."""

    def on_event(self, value: Any, timestamp: int) -> int:
        """Show one record to the generator; return the highest watermark that it emitted so far."""
        self._generator.on_event(value, timestamp, self)
        return self._emitted

    def on_batch(self, highest_timestamp: int) -> None:
        pass

    def periodic(self) -> int:
        self._generator.on_periodic_emit(self)
        return self._emitted

    def state(self) -> Any:
        # By value: the generator's class may live in the user's script, which cannot be imported where state is read.
        return cloudpickle.dumps((self._generator, self._emitted))

    def restore(self, state: Any) -> None:
        self._generator, self._emitted = cloudpickle.loads(state)

    def emit_watermark(self, watermark: Any) -> None:
        timestamp = getattr(watermark, "timestamp", watermark)
        if not isinstance(timestamp, int) or isinstance(timestamp, bool):
            raise TypeMismatchError(
                f"{type(self._generator).__name__}: emit_watermark expects a whole number of milliseconds, "
                f"found {watermark!r}"
            )
        if timestamp > self._emitted:
            self._emitted = timestamp
        self.marked_idle = False

    def mark_idle(self) -> None:
        self.marked_idle = True

    def mark_active(self) -> None:
        self.marked_idle = False


def logic_of(strategy: WatermarkStrategy) -> WatermarkLogic:
    """A fresh logic for one split or partition."""
    if strategy.kind is WatermarkKind.NONE:
        return NoWatermarks()
    if strategy.kind is WatermarkKind.MONOTONOUS:
        return BoundedOutOfOrderness(0)
    if strategy.kind is WatermarkKind.BOUNDED:
        return BoundedOutOfOrderness(strategy.max_out_of_orderness_ms)
    if strategy.generator_supplier is None:
        raise ConfigurationError("a custom watermark strategy needs a generator; use WatermarkStrategy.for_generator")
    generator = strategy.generator_supplier()
    if not callable(getattr(generator, "on_event", None)) or not callable(getattr(generator, "on_periodic_emit", None)):
        raise ConfigurationError(
            f"the supplier given to WatermarkStrategy.for_generator returned {generator!r}; expected a "
            "WatermarkGenerator, with on_event and on_periodic_emit"
        )
    return GeneratedWatermarks(generator)
