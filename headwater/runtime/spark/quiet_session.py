"""Keeps Spark's noise out of the output of a program that made its SparkSession itself.

Such a session logs warnings and draws progress bars, as in Spark's shell: for epochs, several a second. What goes wrong
in an epoch, headwater tells itself, and what ends a streaming query, too.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator

from pyspark import SparkContext

_SPARKS_OWN = "org/apache/spark/log4j2-defaults.properties"
_QUERY = "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution"
_CALLBACKS = ("py4j.clientserver", "py4j.java_gateway")


def quieten(context: SparkContext, log_level: str) -> None:
    """Stop the progress bars of `context`, and let it log at `log_level`, unless somebody configured its log."""
    jvm = context._jvm
    with contextlib.suppress(Exception):  # all of it are Spark's inner parts: noise is no reason to fail
        bar = context._jsc.sc().progressBar()
        if bar.isDefined():
            bar.get().stop()
    with contextlib.suppress(Exception):
        log4j = jvm.org.apache.logging.log4j
        log4j.core.config.Configurator.setLevel(_QUERY, log4j.Level.OFF)  # it writes what we raise
        chosen = log4j.LogManager.getContext(False).getConfiguration().getConfigurationSource().getLocation()
        # The threshold of Spark's shells, and so of PySpark's programs. It goes when somebody sets a level.
        threshold = getattr(getattr(jvm, "org.apache.spark.internal.Logging$"), "MODULE$").sparkShellThresholdLevel()
        if str(chosen).endswith(_SPARKS_OWN) and threshold is not None:
            context.setLogLevel(log_level)


@contextlib.contextmanager
def quiet_callbacks(is_known: Callable[[BaseException], bool]) -> Iterator[None]:
    """In this block, py4j does not show errors that `is_known`: they come out of the block by themselves."""

    def shown(record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return error is None or not is_known(error)

    for name in _CALLBACKS:
        logging.getLogger(name).addFilter(shown)
    try:
        yield
    finally:
        for name in _CALLBACKS:
            logging.getLogger(name).removeFilter(shown)
