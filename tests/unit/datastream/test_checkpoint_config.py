"""Checkpoint settings: they reach the configuration, or say that they have no effect."""

from __future__ import annotations

import warnings

import pytest

from headwater.common import Configuration, Duration
from headwater.common.errors import ConfigurationError, TypeMismatchError
from headwater.datastream import CheckpointConfig, CheckpointingMode, ExternalizedCheckpointRetention
from headwater.datastream.no_effect import NoEffectWarning, forget_warnings


@pytest.fixture
def configuration() -> Configuration:
    return Configuration()


@pytest.fixture
def config(configuration) -> CheckpointConfig:
    forget_warnings()
    return CheckpointConfig(configuration)


def test_defaults(config):
    assert config.is_checkpointing_enabled()
    assert config.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE
    assert config.get_checkpoint_interval() == 1_000
    assert config.get_checkpoint_timeout() == 600_000
    assert config.get_max_concurrent_checkpoints() == 1
    assert config.is_fail_on_checkpointing_errors()
    assert not config.is_unaligned_checkpoints_enabled()
    assert config.get_alignment_timeout() == Duration.of_millis(0)


def test_the_interval_and_the_configuration_are_one(config, configuration):
    config.set_checkpoint_interval(250)
    assert configuration.get_integer("execution.checkpointing.interval", 0) == 250
    configuration.set_string("execution.checkpointing.interval", "100 ms")
    assert config.get_checkpoint_interval() == 100


@pytest.mark.parametrize("interval", [0, -5, "often"])
def test_bad_intervals(config, interval):
    with pytest.raises((ConfigurationError, TypeMismatchError, ValueError, TypeError), match="interval"):
        config.set_checkpoint_interval(interval)


@pytest.mark.parametrize("retention", list(ExternalizedCheckpointRetention))
def test_retention(config, configuration, retention):
    config.set_externalized_checkpoint_retention(retention)
    assert config.get_externalized_checkpoint_retention() is retention
    key = "execution.checkpointing.externalized-checkpoint-retention"
    assert configuration.get_string(key, "") == retention.name
    kept = retention is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
    assert config.is_externalized_checkpoints_enabled() is kept


@pytest.mark.parametrize(
    ("set_it", "get_it", "value", "key", "stored"),
    [
        ("set_checkpoint_timeout", "get_checkpoint_timeout", 50, "timeout", 50),
        ("set_min_pause_between_checkpoints", "get_min_pause_between_checkpoints", 5, "min-pause", 5),
        ("set_tolerable_checkpoint_failure_number", "get_tolerable_checkpoint_failure_number", 3,
         "tolerable-failed-checkpoints", 3),
        ("set_fail_on_checkpointing_errors", "is_fail_on_checkpointing_errors", False,
         "tolerable-failed-checkpoints", 2**31 - 1),
    ],
)  # fmt: skip
def test_how_checkpoints_are_taken(config, configuration, set_it, get_it, value, key, stored):
    assert getattr(config, set_it)(value) is config
    assert getattr(config, get_it)() == value
    assert configuration.get_integer(f"execution.checkpointing.{key}", -1) == stored


@pytest.mark.parametrize("bad", [-1, "three", 1.5])
def test_a_bad_number_of_tolerable_failures_is_refused(config, bad):
    with pytest.raises(ConfigurationError, match="number from 0"):
        config.set_tolerable_checkpoint_failure_number(bad)


@pytest.mark.parametrize(
    ("set_it", "get_it", "value"),
    [
        ("set_max_concurrent_checkpoints", "get_max_concurrent_checkpoints", 2),
        ("enable_unaligned_checkpoints", "is_unaligned_checkpoints_enabled", True),
        ("set_force_unaligned_checkpoints", "is_force_unaligned_checkpoints", True),
        ("set_alignment_timeout", "get_aligned_checkpoint_timeout", Duration.of_seconds(1)),
        ("set_checkpointing_mode", "get_checkpointing_mode", CheckpointingMode.AT_LEAST_ONCE),
    ],
)
def test_what_has_no_effect_is_remembered_and_said_once(config, set_it, get_it, value):
    with pytest.warns(NoEffectWarning, match="has no effect in headwater: ") as seen:
        assert getattr(config, set_it)(value) is config
        getattr(config, set_it)(value)
    assert len(seen) == 1
    assert getattr(config, get_it)() == value


def test_asking_for_what_is_given_anyway_is_silent(config):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config.set_max_concurrent_checkpoints(1).disable_unaligned_checkpoints()
        config.set_checkpointing_mode(CheckpointingMode.EXACTLY_ONCE)


def test_wrong_kinds(config):
    with pytest.raises(TypeMismatchError, match="expects a CheckpointingMode"):
        config.set_checkpointing_mode("EXACTLY_ONCE")
    with pytest.raises(TypeMismatchError, match="expects an ExternalizedCheckpointRetention"):
        config.set_externalized_checkpoint_retention("RETAIN")
