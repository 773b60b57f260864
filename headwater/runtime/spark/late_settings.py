"""Warns of settings that come too late, because Spark already runs in this process with others."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping

from pyspark import SparkContext

from headwater.common.advice import warn_user
from headwater.common.config.values import read_memory_bytes

_SECRET = re.compile("secret|password|token|access[.]?key|account[.]key|credential", re.IGNORECASE)
"""Names of settings whose values are not shown: those that Spark does not show either, and Azure's."""

_started_with: dict[str, str] = {}
"""The settings with which this process started Spark, in their own spelling: Spark may spell them differently."""
_said: set[tuple[str, str]] = set()


def started_with(confs: Mapping[str, str]) -> None:
    """Remember the settings with which headwater started Spark."""
    _started_with.clear()
    _started_with.update(confs)


def warn_of_late_settings(asked: Mapping[str, tuple[str, str]], context: SparkContext) -> None:
    """Warn of settings that differ from those of `context`. Once per setting and value in this process.

    `asked` is {Spark's key: (the key that somebody set, its value)}.
    """
    for key, value, running in late_settings(asked, _reader(context)):
        if (key, value) not in _said:
            _said.add((key, value))
            has = "does not have it" if running is None else f"has {_shown(key, running)}"
            warn_user(
                f"setting '{key}' has no effect: {_shown(key, value)} was asked for, but Spark already runs in this "
                f"process and {has}; make the setting in the first job of the process, or where the program starts "
                "Spark itself, or run the job in a process of its own"
            )


def late_settings(
    asked: Mapping[str, tuple[str, str]], running: Callable[[str], str | None]
) -> Iterator[tuple[str, str, str | None]]:
    """Yield (key that was set, its value, running value) of the settings that differ from the running ones."""
    for spark_key, (key, value) in asked.items():
        if _started_with.get(spark_key) != value:
            found = running(spark_key)
            if found is None or not _same(spark_key, value, found):
                yield key, value, found


def _shown(key: str, value: str) -> str:
    return "another value" if _SECRET.search(key) else repr(value)


def forget_warnings() -> None:
    """Forget which warnings were given. For tests."""
    _said.clear()


def _same(key: str, value: str, found: str) -> bool:
    if value == found or value.lower() == found.lower() in ("true", "false"):
        return True
    if not key.endswith("emory"):
        return False
    try:
        return read_memory_bytes(value) == read_memory_bytes(found)
    except ValueError:
        return False


def _reader(context: SparkContext) -> Callable[[str], str | None]:
    conf = context._conf  # read-only; `getConf()` would copy all of it, which takes about 40 ms

    def running(key: str) -> str | None:
        if key == "spark.master":
            return str(context.master)
        found: str | None = conf.get(key)
        sql = sys.modules.get("pyspark.sql")  # if it is not loaded, there is no session
        if sql is None or not key.startswith("spark.sql."):
            return found
        session = sql.SparkSession.getActiveSession() or sql.SparkSession._instantiatedSession  # active in this thread
        return found if session is None else session.conf.get(key, found)

    return running
