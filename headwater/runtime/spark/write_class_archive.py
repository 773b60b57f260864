"""Writes the class archive of this environment (see `class_archive.py`):

    python -m headwater.runtime.spark.write_class_archive

A small job runs, and the classes that it used are written beside the packages of this environment.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from pyspark import SparkContext
from pyspark.find_spark_home import _find_spark_home

from headwater.common import Configuration
from headwater.common.errors import ConfigurationError, HeadwaterError
from headwater.common.machine.java import require_java
from headwater.datastream import StreamExecutionEnvironment
from headwater.runtime.spark import class_archive, session
from headwater.runtime.spark.gateway import class_path


def build(archive: Path) -> None:
    """Write `archive`. Needs a process in which Spark does not run yet, and ends its JVM."""
    java = require_java()
    if SparkContext._active_spark_context is not None:
        raise ConfigurationError("Spark runs in this process already; make the class archive in one of its own")
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.unlink(missing_ok=True)  # a JVM that uses one cannot write one
    with tempfile.TemporaryDirectory(prefix="headwater-archive-", dir=archive.parent) as directory:
        written = Path(directory) / archive.name
        _run_a_job((f"-XX:ArchiveClassesAtExit={written}", *class_archive.QUIET), directory)
        _end_jvm()
        if not written.exists() or not _is_usable(java, written):
            raise ConfigurationError(f"the JVM ({java}) wrote no usable class archive to {archive.parent}")
        os.replace(written, archive)


def _run_a_job(jvm_options: tuple[str, ...], directory: str) -> None:
    """Two stages, slots, a shuffle, checkpoints: what nearly every job needs of Spark."""
    conf = {
        "headwater.master": "local[2]",
        "spark.driver.extraJavaOptions": " ".join((session.jvm_options("off"), *jvm_options)),
        "execution.checkpointing.dir": str(Path(directory) / "checkpoints"),
    }
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(conf)).set_parallelism(2)
    counts = env.from_collection(range(100)).key_by(lambda number: number % 3).reduce(lambda left, right: left + right)
    counts.print()
    with contextlib.redirect_stdout(io.StringIO()):
        env.execute("class archive")


def _is_usable(java: str, archive: Path) -> bool:
    """Half an archive (a full disk) makes a JVM crash, so nobody may ever see one."""
    options = ["-Xshare:on", f"-XX:SharedArchiveFile={archive}", "-XX:ErrorFile=/dev/null"]
    command = [java, *options, "-cp", class_path(_find_spark_home()), "-version"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _end_jvm() -> None:
    process = session.jvm_process()
    assert process is not None and process.stdin is not None
    context = SparkContext._active_spark_context
    assert context is not None
    context.stop()
    process.stdin.close()
    process.wait()


def main() -> int:
    archive = class_archive.location()
    try:
        build(archive)
    except (HeadwaterError, OSError) as error:
        print(f"headwater: no class archive, Spark starts more slowly: {error}", file=sys.stderr)
        return 1
    print(f"{archive}: {archive.stat().st_size >> 20} MiB; Spark's JVM starts faster from now on")
    return 0


if __name__ == "__main__":
    sys.exit(main())
