"""The Spark context that epochs run on: the program's own if it has one, otherwise a new one."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.find_spark_home import _find_spark_home

from headwater.common.machine.java import require_java
from headwater.runtime.spark.archive_writer import start_writer
from headwater.runtime.spark.gateway import (
    can_start_directly,
    forget_address,
    start_gateway,
    start_with_spark_submit,
)
from headwater.runtime.spark.late_settings import started_with, warn_of_late_settings
from headwater.runtime.spark.master import require_master, told_while_waiting
from headwater.runtime.spark.python_files import zip_package
from headwater.runtime.spark.quiet_session import quieten
from headwater.runtime.spark.worker_sockets import socket_settings

_LOG4J = Path(__file__).with_name("log4j2.properties")

# Why: docs/decisions/0003 (no retries) and 0005 (what an epoch costs).
_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.locality.wait": "0",
    "spark.task.maxFailures": "1",
    "spark.stage.maxConsecutiveAttempts": "1",
    "spark.speculation": "false",
    "spark.shuffle.compress": "false",
    "spark.shuffle.sort.bypassMergeThreshold": "0",  # else a task makes a file for each partition that it writes to
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.cleaner.periodicGC.interval": "30s",  # shuffle files of past epochs go when the JVM collects their RDDs
}

# Only the C1 compiler: epochs are many small jobs that move bytes, and C2 spends more on compiling than it wins.
_JVM_OPTIONS = "-XX:+UseParallelGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Xshare:auto"


_jvm_process: subprocess.Popen[bytes] | None = None  # kept: the JVM ends when the pipe to its standard input closes


@dataclass(frozen=True)
class SparkSettings:
    """What the job's configuration says about Spark."""

    master: str
    app_name: str
    driver_memory: str
    log_level: str
    confs: Mapping[str, str]
    asked: Mapping[str, tuple[str, str]]
    """{Spark's key: (the key that somebody set, its value)}, without defaults."""


def warn_if_running(settings: SparkSettings) -> None:
    """Warn of settings that come too late because Spark already runs. Called in the program's thread."""
    active = _active_context()
    if active is not None:
        warn_of_late_settings(settings.asked, active)


def spark_context(settings: SparkSettings) -> SparkContext:
    """Return the active context, unchanged, or a new one."""
    active = _active_context()
    if active is not None:
        warn_of_late_settings(settings.asked, active)  # it may have been started since the program could be told
        if _jvm_process is None:
            quieten(active, spark_log_level(settings.log_level).upper())
        if "PYSPARK_PYTHON" not in os.environ and is_local(str(active.master)):
            active.pythonExec = sys.executable  # "python3" may be another Python, without headwater
        return active
    java = require_java()
    os.environ["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON", sys.executable)
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(_import_paths()))
    options = jvm_options(spark_log_level(settings.log_level))
    confs = {
        **_DEFAULTS,
        "spark.master": settings.master,
        "spark.app.name": settings.app_name,
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.extraJavaOptions": options,
        "spark.executor.extraJavaOptions": options,
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        **socket_settings(on_this_host(settings.master), settings.confs),
        **settings.confs,
    }
    if settings.master.startswith("local-cluster"):
        os.environ.setdefault("SPARK_HOME", str(Path(sys.modules["pyspark"].__file__ or "").parent))
    if logging.getLogger("py4j").level == logging.NOTSET:
        logging.getLogger("py4j").setLevel(logging.WARNING)  # at INFO it tells of every connection
    require_master(confs["spark.master"])
    with told_while_waiting(confs["spark.master"]):
        context = _start(java, settings.master, confs)
    started_with(confs)
    if not on_this_host(settings.master):
        package = Path(__file__).resolve().parents[2]
        context.addPyFile(str(zip_package(package, Path(context._temp_dir or ".") / "headwater.zip")))
    return context


def spark_session(settings: SparkSettings) -> Any:
    """Return the session of the active context, or of a new one."""
    from pyspark.sql import SparkSession  # loads pandas: only for those who need a session

    spark_context(settings)
    return SparkSession.builder.getOrCreate()


def _active_context() -> SparkContext | None:
    active: SparkContext | None = SparkContext._active_spark_context
    return active if active is not None and active._jsc is not None else None


def spark_log_level(log_level: str) -> str:
    """Spark says nothing unless somebody wants to know much: what goes wrong, headwater tells itself."""
    return log_level.lower() if log_level.upper() in ("DEBUG", "INFO") else "off"


def jvm_options(spark_log_level: str) -> str:
    """Return the default JVM options of drivers and executors."""
    return f"{_JVM_OPTIONS} -Dlog4j2.configurationFile={_LOG4J.as_uri()} -Dheadwater.spark.log.level={spark_log_level}"


def jvm_process() -> subprocess.Popen[bytes] | None:
    """Return the driver's JVM if this module started it."""
    return _jvm_process


def start_is_over() -> None:
    """The first epoch has run. If the JVM had to load every class, let the next one start from an archive."""
    command = _jvm_process.args if _jvm_process is not None else ()
    if isinstance(command, list) and not any("Archive" in str(word) for word in command):
        start_writer(str(command[0]), Path(_find_spark_home()))


def _start(java: str, master: str, confs: Mapping[str, str]) -> SparkContext:
    global _jvm_process
    direct = SparkContext._gateway is None and can_start_directly(master, confs)
    if direct:
        _jvm_process = start_gateway(java, confs)
    elif SparkContext._gateway is None:
        start_with_spark_submit(confs)
    try:
        conf = SparkConf()
        for key, value in confs.items():
            conf.set(key, value)
        return SparkContext(conf=conf)
    finally:
        if direct:
            forget_address()


def is_local(master: str) -> bool:
    """Return True if all tasks run on this host, inside the driver's JVM."""
    return master == "local" or master.startswith("local[")


def on_this_host(master: str) -> bool:
    """Whether all executors run on this host."""
    return is_local(master) or master.startswith("local-cluster")


def _import_paths() -> list[str]:
    """Return where workers must look for the program's own modules. They find installed packages by themselves."""
    paths = [os.path.abspath(entry) for entry in sys.path if entry and "site-packages" not in entry]
    paths = [entry for entry in paths if not entry.startswith(sys.base_prefix) or entry == os.getcwd()]
    package_root = str(Path(__file__).resolve().parents[3])
    return [*paths, package_root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
