"""How event time is read from records: settings, and the interfaces that users implement.

The generators that run are made from the settings in `headwater/time/watermarks.py`.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from headwater.common.callables import unfit
from headwater.common.errors import ConfigurationError
from headwater.common.time import DurationLike, to_millis


class TimestampAssigner(ABC):
    """Reads a record's event time."""

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """The timestamp of `value` in milliseconds since 1970.

        `record_timestamp` is what the source or an earlier assigner gave, or -2**63 if nobody did.
        """


class WatermarkOutput(ABC):
    """Receives a generator's watermarks. One that is lower than the last one is ignored."""

    @abstractmethod
    def emit_watermark(self, watermark: int) -> None:
        """Declare that no more records with a timestamp <= `watermark` (ms) come."""

    @abstractmethod
    def mark_idle(self) -> None:
        """Do not wait for this input until its next watermark, or `mark_active`."""

    @abstractmethod
    def mark_active(self) -> None:
        """Take this input into account again."""


class WatermarkGenerator(ABC):
    """A user's own way to make watermarks: punctuated (emit in `on_event`), periodic (in `on_periodic_emit`) or both.

    One generator exists per source split. It is pickled into every checkpoint: its attributes must hold only what it
    has to remember. It must not read a clock.
    """

    @abstractmethod
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Called for every record, in order, before the record goes on. A watermark emitted here follows the record."""

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Called after every batch of records and at the end of every epoch."""


AssignerLike: TypeAlias = TimestampAssigner | Callable[[Any, int], int]
GeneratorSupplier: TypeAlias = Callable[[], WatermarkGenerator]


class WatermarkKind(Enum):
    """Which generator a strategy asks for."""

    NONE = "none"
    MONOTONOUS = "monotonous"
    BOUNDED = "bounded"
    CUSTOM = "custom"


@dataclass(frozen=True)
class WatermarkAlignment:
    """Sources of one group stay together in event time."""

    group: str
    max_drift_ms: int


@dataclass(frozen=True)
class WatermarkStrategy:
    """Which watermarks a source emits and where timestamps come from. Immutable: `with_...` returns a new strategy."""

    kind: WatermarkKind = WatermarkKind.NONE
    max_out_of_orderness_ms: int = 0
    generator_supplier: GeneratorSupplier | None = None
    timestamp_assigner: AssignerLike | None = None
    idle_timeout_ms: int | None = None
    alignment: WatermarkAlignment | None = None

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """Timestamps only grow (per split): the watermark follows the last one closely."""
        return WatermarkStrategy(WatermarkKind.MONOTONOUS)

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: DurationLike) -> WatermarkStrategy:
        """A record is at most this much older than the newest one before it."""
        delay_ms = to_millis(max_out_of_orderness, "max_out_of_orderness")
        return WatermarkStrategy(WatermarkKind.BOUNDED, max_out_of_orderness_ms=delay_ms)

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """No watermarks before the input ends: for jobs that do not use event time."""
        return WatermarkStrategy(WatermarkKind.NONE)

    @staticmethod
    def for_generator(generator_supplier: GeneratorSupplier) -> WatermarkStrategy:
        """A user's own generator. `generator_supplier` (a class or a function) makes a fresh one per split."""
        if isinstance(generator_supplier, WatermarkGenerator):
            raise ConfigurationError(
                f"for_generator: expected something that makes a generator, found one, {generator_supplier!r}; every "
                f"split needs its own, so pass the class, or lambda: {type(generator_supplier).__name__}(...)"
            )
        if not callable(generator_supplier):
            raise ConfigurationError(
                f"for_generator: expected a class or function without arguments, found {generator_supplier!r}"
            )
        return WatermarkStrategy(WatermarkKind.CUSTOM, generator_supplier=generator_supplier)

    def with_timestamp_assigner(self, timestamp_assigner: AssignerLike) -> WatermarkStrategy:
        """Timestamps come from a TimestampAssigner, or from a function of (value, record_timestamp)."""
        if isinstance(timestamp_assigner, type):
            raise ConfigurationError(
                f"with_timestamp_assigner: found the class {timestamp_assigner.__name__}, expected an instance; "
                f"write {timestamp_assigner.__name__}()"
            )
        if found := unfit(getattr(timestamp_assigner, "extract_timestamp", timestamp_assigner), 2):
            raise ConfigurationError(
                "with_timestamp_assigner: expected a TimestampAssigner or a function of (value, record_timestamp), "
                f"found {found}"
            )
        return dataclasses.replace(self, timestamp_assigner=timestamp_assigner)

    def with_idleness(self, idle_timeout: DurationLike) -> WatermarkStrategy:
        """A split without records for `idle_timeout` of processing time no longer holds the others back."""
        return dataclasses.replace(self, idle_timeout_ms=to_millis(idle_timeout, "idle_timeout", minimum=1))

    def with_watermark_alignment(
        self,
        watermark_group: str,
        max_allowed_watermark_drift: DurationLike,
        update_interval: DurationLike | None = None,
    ) -> WatermarkStrategy:
        """A split that is more than the drift ahead of the slowest one of its group is not read until that catches up.

        The group is all splits of all sources of the job with the same `watermark_group`, idle ones excluded. Only the
        strategy that `from_source` gets is aligned. `update_interval` is checked and not used: every epoch looks.
        """
        if not isinstance(watermark_group, str) or not watermark_group:
            raise ConfigurationError(
                f"with_watermark_alignment: expected the name of a group, found {watermark_group!r}"
            )
        drift_ms = to_millis(max_allowed_watermark_drift, "max_allowed_watermark_drift")
        if update_interval is not None:
            to_millis(update_interval, "update_interval", minimum=1)
        return dataclasses.replace(self, alignment=WatermarkAlignment(watermark_group, drift_ms))

    def extractor(self) -> Callable[[Any, int], int] | None:
        """The assigner as a function of (value, record_timestamp); None: the source's timestamps are used."""
        assigner: Any = self.timestamp_assigner
        extract: Callable[[Any, int], int] | None = getattr(assigner, "extract_timestamp", assigner)
        return extract


class AssignerWithPeriodicWatermarksWrapper:
    """PyFlink's name for a Java object that headwater does not have. It cannot be created."""

    def __init__(self, *_: Any) -> None:
        raise ConfigurationError(
            "AssignerWithPeriodicWatermarksWrapper wraps a Java class; use WatermarkStrategy.for_generator instead"
        )
