"""Settings that speak of a JVM are remembered under Flink's keys, and change nothing."""

from __future__ import annotations

import pytest

from headwater.common.config.flink_keys import is_flink_key
from headwater.common.configuration import Configuration
from headwater.common.execution_config import ExecutionConfig


@pytest.mark.parametrize(
    ("enable", "disable", "is_enabled", "default"),
    [
        ("enable_closure_cleaner", "disable_closure_cleaner", "is_closure_cleaner_enabled", True),
        ("enable_object_reuse", "disable_object_reuse", "is_object_reuse_enabled", False),
        ("disable_generic_types", "enable_generic_types", "has_generic_types_disabled", False),
        ("enable_auto_generated_uids", "disable_auto_generated_uids", "has_auto_generated_uids_enabled", True),
        ("enable_force_kryo", "disable_force_kryo", "is_force_kryo_enabled", False),
        ("enable_force_avro", "disable_force_avro", "is_force_avro_enabled", False),
    ],
)
def test_switches(enable: str, disable: str, is_enabled: str, default: bool) -> None:
    configuration = Configuration()
    config = ExecutionConfig(configuration)
    assert getattr(config, is_enabled)() is default
    for method, expected in ((enable, True), (disable, False)):
        assert getattr(config, method)() is config
        assert getattr(config, is_enabled)() is expected
    assert all(is_flink_key(key) for key in configuration.key_set())


@pytest.mark.parametrize(
    ("name", "default"),
    [("latency_tracking_interval", 0), ("task_cancellation_interval", 30_000), ("task_cancellation_timeout", 180_000)],
)
def test_durations(name: str, default: int) -> None:
    configuration = Configuration()
    config = ExecutionConfig(configuration)
    assert getattr(config, f"get_{name}")() == default
    assert getattr(config, f"set_{name}")(77) is config
    assert getattr(config, f"get_{name}")() == 77
    assert all(is_flink_key(key) for key in configuration.key_set())


def test_snapshot_compression_and_registered_types() -> None:
    config = ExecutionConfig(Configuration())
    assert not config.is_use_snapshot_compression()
    assert config.set_use_snapshot_compression(True).is_use_snapshot_compression()
    assert config.get_registered_kryo_types() == config.get_registered_pojo_types() == []
    assert config.get_default_kryo_serializer_classes() == {}
