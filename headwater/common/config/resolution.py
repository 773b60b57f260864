"""Turns what was set into the values in force: checks, environment variables and defaults."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping

from headwater.common.advice import warn_user
from headwater.common.config import job_options as options
from headwater.common.config.flink_keys import flink_keys, is_flink_key
from headwater.common.config.option import ConfigOption
from headwater.common.configuration import Configuration
from headwater.common.errors import ConfigurationError

SPARK_PREFIX = "spark."
"""Settings with this prefix are Spark's own; they are passed on as they are."""

JOB_PARAMETER_PREFIX = f"{options.GLOBAL_JOB_PARAMETERS.key}."
"""Settings with this prefix are the program's own; its functions read them."""

_PASSED_ON = (SPARK_PREFIX, JOB_PARAMETER_PREFIX)
_SPARK_TWINS = {
    "pipeline.jars": "spark.jars",
    "pipeline.classpaths": "spark.jars",
    "python.archives": "spark.archives",
    "python.executable": "spark.pyspark.python",
}
"""Settings of Flink that are one of Spark's under another name."""

_warned: set[str] = set()  # warn about each key once per process
_BY_KEY: dict[str, ConfigOption[object]] = {
    key: option for option in options.OPTIONS for key in (option.key, *option.former_keys)
}
_ENVIRONMENT_PREFIX = "HEADWATER_"
_BY_VARIABLE = {option.environment_variable: option for option in options.OPTIONS}


def option_of(key: str) -> ConfigOption[object] | None:
    """The option that a key, or a former key of it, means."""
    return _BY_KEY.get(key)


def validate(configuration: Configuration) -> None:
    """Check what was set. A bad value is a ConfigurationError; an unknown key is a warning with the nearest known one.

    Called before Spark starts. Keys of Spark are left to Spark.
    """
    for key, raw in configuration.raw_items():
        if key.startswith(_PASSED_ON) or key in _SPARK_TWINS:
            continue
        option = _BY_KEY.get(key)
        if option is None:
            _warn_unknown(key)
        else:
            option.parse(raw)
    _check_together(configuration)


def resolve(configuration: Configuration, environ: Mapping[str, str] | None = None) -> Configuration:
    """Return the values in force, valid: what was set, else the environment variable, else the default.

    An empty environment variable counts as unset. A key of an older Flink version is replaced by today's, unless that
    is set too. Options without a default stay unset.
    """
    environment = os.environ if environ is None else environ
    resolved = Configuration(configuration)
    for option in options.OPTIONS:
        for former in option.former_keys:
            if former in resolved.key_set():
                raw = dict(resolved.raw_items())[former]
                resolved.remove_config(former)
                if not resolved.contains_key(option.key):
                    resolved.set(option, raw)
        if resolved.contains_key(option.key):
            continue
        text = environment.get(option.environment_variable, "")
        if text:
            resolved.set(option, option.parse(text, origin=f"environment variable {option.environment_variable}"))
        elif (value := option.default_value(environment)) is not None:
            resolved.set_default(option, value)
    validate(resolved)
    for name in environment:
        if name.startswith(_ENVIRONMENT_PREFIX) and name not in _BY_VARIABLE:
            _warn_misspelt(name)
    return resolved


def spark_settings(configuration: Configuration) -> dict[str, str]:
    """The settings that are Spark's own, keys and all, and those of Flink that mean the same."""
    settings = {key: text for key, text in configuration.to_dict().items() if key.startswith(SPARK_PREFIX)}
    for key, twin in _SPARK_TWINS.items():
        text = configuration.get_string(key, "")
        if text and twin == "spark.jars":
            known = [settings[twin]] if twin in settings else []
            settings[twin] = ",".join(known + [jar.removeprefix("file://") for jar in text.split(";") if jar])
        elif text:
            settings.setdefault(twin, text)
    return settings


def _check_together(configuration: Configuration) -> None:
    """Raise if two values contradict each other."""
    ordered = (
        (options.PARALLELISM, options.MAX_PARALLELISM),
        (options.EPOCH_MIN_RECORDS, options.EPOCH_MAX_RECORDS),
        (options.EXPONENTIAL_INITIAL_BACKOFF, options.EXPONENTIAL_MAX_BACKOFF),
    )
    for lower, upper in ordered:
        if configuration.contains_key(lower.key) and configuration.contains_key(upper.key):
            least, most = configuration.get(lower), configuration.get(upper)
            if least > most:
                raise ConfigurationError(
                    f"{lower.key} is {least}, which is more than {upper.key}, {most}; lower the one or raise the other"
                )


def forget_warnings() -> None:
    """Warn about every key again. For tests."""
    _warned.clear()


def _warn_misspelt(variable: str) -> None:
    """Warn if an unknown variable is nearly one of ours. Other programs may use the prefix, too."""
    nearest = difflib.get_close_matches(variable, _BY_VARIABLE, n=1, cutoff=0.85)
    if nearest and variable not in _warned:
        _warned.add(variable)
        warn_user(f"unknown environment variable '{variable}' is ignored; did you mean '{nearest[0]}'?")


def _warn_unknown(key: str) -> None:
    if key in _warned:
        return
    _warned.add(key)
    if is_flink_key(key):
        warn_user(f"setting '{key}' is one of Flink's that has no effect in headwater")
        return
    nearest = difflib.get_close_matches(key, [option.key for option in options.OPTIONS], n=1, cutoff=0.75)
    if nearest:
        text = f"unknown setting '{key}' is ignored; did you mean '{nearest[0]}'?"
    else:
        close = difflib.get_close_matches(key, flink_keys(), n=1, cutoff=0.8)
        close = close or difflib.get_close_matches(key, [option.key for option in options.OPTIONS], n=1, cutoff=0.3)
        text = f"unknown setting '{key}' is ignored" + (f"; the nearest known one is '{close[0]}'" if close else "")
    warn_user(text)
