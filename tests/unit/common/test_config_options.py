from __future__ import annotations

import ast
import logging
import warnings
from pathlib import Path
from typing import Any

import pytest

import headwater
from headwater.common.config.flink_keys import is_flink_key
from headwater.common.config.resolution import forget_warnings
from headwater.common.config_options import (
    CHECKPOINT_DIRECTORY,
    CHECKPOINTS_RETAINED,
    EPOCH_DURATION,
    MASTER,
    OPTIONS,
    PARALLELISM,
    RESTART_STRATEGY,
    STATE_DIRECTORY,
    option_of,
    resolve,
    spark_settings,
    validate,
)
from headwater.common.configuration import Configuration
from headwater.common.errors import ConfigurationError
from headwater.common.execution_config import ExecutionConfig


@pytest.fixture(autouse=True)
def every_warning_anew() -> None:
    forget_warnings()


def test_what_was_set_wins_over_the_environment_and_that_over_the_default() -> None:
    environ = {"HEADWATER_EPOCH_DURATION": "3 s", "HEADWATER_PARALLELISM_DEFAULT": "7", "HEADWATER_MASTER": ""}
    resolved = resolve(Configuration().set_string("headwater.epoch.duration", "2 s"), environ)
    assert resolved.get(EPOCH_DURATION) == 2_000
    assert resolved.get(PARALLELISM) == 7
    assert resolved.get_string("headwater.master", "") == "local[*]"
    assert not resolved.contains_key(CHECKPOINT_DIRECTORY.key)


def test_resolving_does_not_change_its_argument() -> None:
    configuration = Configuration()
    resolve(configuration, {})
    assert configuration == Configuration()


def test_defaults_that_depend_on_the_machine() -> None:
    assert resolve(Configuration(), {"XDG_STATE_HOME": "/x"}).get(STATE_DIRECTORY) == "/x/headwater"
    assert resolve(Configuration(), {"HOME": "/h"}).get(STATE_DIRECTORY) == "/h/.local/state/headwater"
    assert resolve(Configuration(), {}).get(PARALLELISM) >= 1


def test_former_keys_mean_todays() -> None:
    configuration = (
        Configuration().set_string("state.checkpoints.dir", "/old").set_integer("state.checkpoints.num-retained", 9)
    )
    configuration.set(CHECKPOINTS_RETAINED, 2)
    assert configuration.get(CHECKPOINT_DIRECTORY) == "/old"
    resolved = resolve(configuration, {})
    assert resolved.get(CHECKPOINT_DIRECTORY) == "/old"
    assert resolved.get(CHECKPOINTS_RETAINED) == 2
    assert not resolved.contains_key("state.checkpoints.dir")
    assert option_of("restart-strategy") is RESTART_STRATEGY


@pytest.mark.parametrize(
    ("key", "raw", "message"),
    [
        ("headwater.epoch.duration", "soon", "expected a duration such as .*, found 'soon'"),
        ("headwater.epoch.duration", 0, "expected at least 1"),
        ("parallelism.default", "0", "expected at least 1, found '0'"),
        ("parallelism.default", 100_000, "expected at most 32768"),
        ("restart-strategy.type", "never", "expected one of fixed-delay, exponential-delay, failure-rate, none"),
        ("pipeline.global-job-parameters", "city", "expected key:value pairs"),
        ("execution.runtime-mode", "FAST", "expected one of STREAMING, BATCH, AUTOMATIC"),
        ("headwater.type-check", "yes", "expected true or false"),
        ("headwater.driver-memory", "lots", "expected a memory size"),
        ("restart-strategy.exponential-delay.jitter-factor", 2, "expected at most 1"),
    ],
)
def test_a_bad_value_names_key_value_and_what_was_expected(key: str, raw: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{key}: {message}"):
        validate(Configuration.from_dict({key: raw}))


def test_a_bad_environment_variable_is_named() -> None:
    with pytest.raises(ConfigurationError, match="environment variable HEADWATER_EPOCH_DURATION"):
        resolve(Configuration(), {"HEADWATER_EPOCH_DURATION": "soon"})


def test_settings_that_contradict_each_other() -> None:
    configuration = Configuration.from_dict({"parallelism.default": 200})
    with pytest.raises(ConfigurationError, match=r"parallelism\.default is 200, which is more than pipeline\.max-par"):
        resolve(configuration, {})


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("headwater.epoch.duraton", "did you mean 'headwater.epoch.duration'?"),
        ("parallelism.defualt", "did you mean 'parallelism.default'?"),
        ("taskmanager.numberOfTaskSlots", "has no effect in headwater"),
        ("python.fn-execution.bundle.size", "has no effect in headwater"),
        ("metrics.reporter.mine.class", "has no effect in headwater"),
        ("execution.checkpointing.unaligned.enabled", "has no effect in headwater"),
        ("taskmanager.numberOfTaskSlot", "the nearest known one is 'taskmanager.numberOfTaskSlots'"),
        ("zzz", "unknown setting 'zzz' is ignored"),
    ],
)
def test_an_unknown_key_is_a_warning_with_the_nearest_known_one(key: str, message: str) -> None:
    with pytest.warns(UserWarning) as caught:
        validate(Configuration().set_string(key, "1"))
    assert len(caught) == 1
    assert key in str(caught[0].message)
    assert message in str(caught[0].message)


def test_a_warning_points_at_the_line_of_the_user() -> None:
    with pytest.warns(UserWarning) as caught:
        resolve(Configuration().set_string("zzz", "1"), {})
    assert caught[0].filename == __file__


def test_a_key_is_spoken_of_once() -> None:
    configuration = Configuration().set_string("taskmanager.numberOfTaskSlots", "1")
    with pytest.warns(UserWarning, match="no effect"):
        validate(configuration)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        validate(configuration)


@pytest.mark.parametrize("name", ["hashmap", "heap", "rocksdb", "ROCKSDB"])
def test_state_backends_by_name(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        validate(Configuration().set_string("state.backend.type", name))


def test_keys_of_flink_that_spark_has_under_another_name() -> None:
    configuration = Configuration.from_dict(
        {
            "pipeline.jars": "file:///a.jar;file:///b.jar",
            "spark.jars": "/c.jar",
            "python.archives": "/venv.zip#venv",
            "python.executable": "venv/bin/python",
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        validate(configuration)
    assert spark_settings(configuration) == {
        "spark.jars": "/c.jar,/a.jar,/b.jar",
        "spark.archives": "/venv.zip#venv",
        "spark.pyspark.python": "venv/bin/python",
    }


def test_job_parameters_in_one_setting_and_one_by_one() -> None:
    settings = {"pipeline.global-job-parameters": "city:Bern, year:2024", "pipeline.global-job-parameters.year": "2025"}
    config = ExecutionConfig(Configuration.from_dict(settings))
    assert config.get_global_job_parameters() == {"city": "Bern", "year": "2025"}
    config.set_global_job_parameters({"a": "b"})
    assert config.get_global_job_parameters() == {"a": "b"}


def test_every_key_of_ours_that_is_not_our_own_is_one_of_flink() -> None:
    keys = [key for option in OPTIONS for key in (option.key, *option.former_keys) if not key.startswith("headwater.")]
    assert [key for key in keys if not is_flink_key(key)] == []


def test_warnings_reach_a_log_that_was_set_up(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), pytest.warns(UserWarning):
        validate(Configuration().set_string("zzz", "1"))
    assert "zzz" in caplog.text


def test_keys_of_spark_and_of_the_program_pass() -> None:
    configuration = Configuration.from_dict(
        {"spark.executor.memory": "2g", "pipeline.global-job-parameters.city": "Bern", "parallelism.default": 2}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        validate(configuration)
    assert spark_settings(configuration) == {"spark.executor.memory": "2g"}


def test_every_option_is_documented_and_its_default_is_valid() -> None:
    keys = [option.key for option in OPTIONS]
    assert len(set(keys)) == len(keys)
    variables = [option.environment_variable for option in OPTIONS]
    assert len(set(variables)) == len(variables)
    for option in OPTIONS:
        assert option.description.endswith("."), option.key
        default = option.default_value({"HOME": "/h"})
        if default is not None:
            assert option.parse(default) == default


def test_what_holds_by_default_was_not_set_but_the_environment_was() -> None:
    assert not resolve(Configuration(), {}).is_set(MASTER)
    assert resolve(Configuration(), {MASTER.environment_variable: "local[3]"}).is_set(MASTER)
    assert resolve(Configuration().set(MASTER, "local[*]"), {}).is_set(MASTER)


def test_a_misspelt_environment_variable_is_a_warning_with_the_nearest_known_one() -> None:
    forget_warnings()
    with pytest.warns(UserWarning, match="did you mean 'HEADWATER_EPOCH_DURATION'"):
        resolve(Configuration(), {"HEADWATER_EPOCH_DURATOIN": "1 s"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resolve(Configuration(), {"HEADWATER_EPOCH_DURATOIN": "1 s"})  # said already
        resolve(Configuration(), {"HEADWATER_FAULTS": "x", "HEADWATER_HOME": "y", "HEADWATER_PYFLINK_EXAMPLES": "z"})


def test_a_key_is_spelled_where_its_option_is_declared_and_nowhere_else() -> None:
    package = Path(headwater.__file__).parent
    keys = {key for option in OPTIONS for key in (option.key, *option.former_keys)}
    spelled = {
        (path.relative_to(package).as_posix(), node.value)
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in keys
    }
    allowed = {
        "common/config/job_options.py",
        "common/output_tag.py",  # the id of a side output, called like the setting that fills it
        "runtime/spark/write_class_archive.py",  # a program of a user's kind
        "server/shapes/job.py",  # a field of Flink's JSON, called like a former key
    }
    assert not {place for place in spelled if place[0] not in allowed}


@pytest.mark.parametrize(
    ("key", "raw", "limit"),
    [
        ("state.backend.rocksdb.memory.fixed-per-slot", "1 mb", "at least 8 mb"),
        ("headwater.driver-memory", "1k", "at least 256 mb"),
        ("headwater.epoch.duration", "0", "at least 1 ms"),
        ("parallelism.default", "40000", "at most 32768"),
    ],
)
def test_limits_are_named_in_the_units_of_the_option(key: str, raw: str, limit: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{key}: expected {limit}, found"):
        validate(Configuration().set_string(key, raw))
