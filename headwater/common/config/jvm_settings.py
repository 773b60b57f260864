"""Settings of PyFlink's ExecutionConfig that speak of a JVM: remembered under Flink's keys, without effect.

They let programs that set them run unchanged. `resolution.validate` warns once about each key when the job is planned.
"""

from __future__ import annotations

from typing import Self, TypeVar

from headwater.common.config.option import ConfigOption, ConfigOptions
from headwater.common.configuration import Configuration
from headwater.common.time import DurationLike, to_millis

T = TypeVar("T")


def _switch(key: str, default: bool) -> ConfigOption[bool]:
    return ConfigOptions.key(key).boolean_type().default_value(default)


def _milliseconds(key: str, default: int) -> ConfigOption[int]:
    return ConfigOptions.key(key).long_type().default_value(default)


_OBJECT_REUSE = _switch("pipeline.object-reuse", False)
_GENERIC_TYPES = _switch("pipeline.generic-types", True)
_GENERATED_UIDS = _switch("pipeline.auto-generate-uids", True)
_FORCE_KRYO = _switch("pipeline.force-kryo", False)
_FORCE_AVRO = _switch("pipeline.force-avro", False)
_COMPRESSION = _switch("execution.checkpointing.snapshot-compression", False)
_CLOSURE_CLEANER = ConfigOptions.key("pipeline.closure-cleaner-level").string_type().default_value("RECURSIVE")
_LATENCY_INTERVAL = _milliseconds("metrics.latency.interval", 0)
_CANCELLATION_INTERVAL = _milliseconds("task.cancellation.interval", 30_000)
_CANCELLATION_TIMEOUT = _milliseconds("task.cancellation.timeout", 180_000)


class JvmSettings:
    """Mix-in of `ExecutionConfig`. Getters give back what was set, or Flink's default."""

    _configuration: Configuration

    PARALLELISM_DEFAULT = -1
    PARALLELISM_UNKNOWN = -2

    def enable_closure_cleaner(self) -> Self:
        return self._set(_CLOSURE_CLEANER, "RECURSIVE")

    def disable_closure_cleaner(self) -> Self:
        return self._set(_CLOSURE_CLEANER, "NONE")

    def is_closure_cleaner_enabled(self) -> bool:
        return self._configuration.get(_CLOSURE_CLEANER) != "NONE"

    def enable_object_reuse(self) -> Self:
        return self._set(_OBJECT_REUSE, True)

    def disable_object_reuse(self) -> Self:
        return self._set(_OBJECT_REUSE, False)

    def is_object_reuse_enabled(self) -> bool:
        return self._configuration.get(_OBJECT_REUSE)

    def enable_generic_types(self) -> Self:
        return self._set(_GENERIC_TYPES, True)

    def disable_generic_types(self) -> Self:
        return self._set(_GENERIC_TYPES, False)

    def has_generic_types_disabled(self) -> bool:
        return not self._configuration.get(_GENERIC_TYPES)

    def enable_auto_generated_uids(self) -> Self:
        return self._set(_GENERATED_UIDS, True)

    def disable_auto_generated_uids(self) -> Self:
        return self._set(_GENERATED_UIDS, False)

    def has_auto_generated_uids_enabled(self) -> bool:
        return self._configuration.get(_GENERATED_UIDS)

    def enable_force_kryo(self) -> Self:
        return self._set(_FORCE_KRYO, True)

    def disable_force_kryo(self) -> Self:
        return self._set(_FORCE_KRYO, False)

    def is_force_kryo_enabled(self) -> bool:
        return self._configuration.get(_FORCE_KRYO)

    def enable_force_avro(self) -> Self:
        return self._set(_FORCE_AVRO, True)

    def disable_force_avro(self) -> Self:
        return self._set(_FORCE_AVRO, False)

    def is_force_avro_enabled(self) -> bool:
        return self._configuration.get(_FORCE_AVRO)

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> Self:
        return self._set(_COMPRESSION, use_snapshot_compression)

    def is_use_snapshot_compression(self) -> bool:
        return self._configuration.get(_COMPRESSION)

    def set_latency_tracking_interval(self, interval: DurationLike) -> Self:
        return self._set(_LATENCY_INTERVAL, to_millis(interval, "interval"))

    def get_latency_tracking_interval(self) -> int:
        return self._configuration.get(_LATENCY_INTERVAL)

    def set_task_cancellation_interval(self, interval: DurationLike) -> Self:
        return self._set(_CANCELLATION_INTERVAL, to_millis(interval, "interval"))

    def get_task_cancellation_interval(self) -> int:
        return self._configuration.get(_CANCELLATION_INTERVAL)

    def set_task_cancellation_timeout(self, timeout: DurationLike) -> Self:
        return self._set(_CANCELLATION_TIMEOUT, to_millis(timeout, "timeout"))

    def get_task_cancellation_timeout(self) -> int:
        return self._configuration.get(_CANCELLATION_TIMEOUT)

    def get_default_kryo_serializer_classes(self) -> dict[str, str]:
        """None: records are pickled."""
        return {}

    def get_registered_kryo_types(self) -> list[str]:
        """None: records are pickled."""
        return []

    def get_registered_pojo_types(self) -> list[str]:
        """None: records are pickled."""
        return []

    def _set(self, option: ConfigOption[T], value: T) -> Self:
        self._configuration.set(option, value)
        return self
