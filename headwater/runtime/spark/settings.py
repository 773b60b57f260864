"""What a configuration says about Spark."""

from __future__ import annotations

from headwater.common.config_options import DRIVER_MEMORY, LOG_LEVEL, MASTER, spark_settings
from headwater.common.configuration import Configuration
from headwater.runtime.spark.session import SparkSettings


def settings_of(configuration: Configuration, name: str) -> SparkSettings:
    """The settings with which Spark is started for a program called `name`."""
    master, memory = configuration.get(MASTER), _spark_memory(configuration.get(DRIVER_MEMORY))
    confs = spark_settings(configuration)
    asked = {key: (key, value) for key, value in confs.items()}
    if configuration.is_set(MASTER):
        asked.setdefault("spark.master", (MASTER.key, master))
    if configuration.is_set(DRIVER_MEMORY):
        asked.setdefault("spark.driver.memory", (DRIVER_MEMORY.key, memory))
    return SparkSettings(master, name, memory, configuration.get(LOG_LEVEL), confs, asked)


def _spark_memory(number_of_bytes: int | None) -> str:
    """Return a memory size in Spark's notation. The default is a gibibyte: the JVM only moves chunks."""
    return "1g" if number_of_bytes is None else f"{max(number_of_bytes >> 20, 1)}m"
